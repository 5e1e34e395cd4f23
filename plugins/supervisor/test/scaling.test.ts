import { describe, expect, test } from 'vitest';
import { Catalog } from '../src/fleet/catalog.ts';
import { scaledInside } from '../src/machines/in-machine-scaler.ts';
import { isSaturated } from '../src/machines/host-samples.ts';
import { type FleetSight, judgeFleet, NO_MEMORY, profileOf, SCALING, type ScalingMemory } from '../src/machines/scaling.ts';
import { service } from './fixtures/machine-box.ts';

const machine = (ip: string, cpu_pct: number, saturated_service: string | null = null) => ({
  ip,
  cpu_pct,
  saturated: cpu_pct >= 85,
  saturated_service,
});
/** A fleet that is looked at every three seconds. */
class Leader {
  memory: ScalingMemory = NO_MEMORY;
  now = 1_000_000;
  readonly decisions: object[] = [];
  settings = { ...SCALING, max: 3 };

  look(machines: FleetSight['machines'], seconds: number, more: Partial<FleetSight> = {}): this {
    for (const end = this.now + seconds * 1_000; this.now < end; this.now += 3_000) {
      const { memory, decision } = judgeFleet(
        this.memory,
        { now: this.now, machines, count: machines.length, inMachine: false, admits: () => false, ...more },
        this.settings,
      );
      this.memory = memory;
      if (decision.do !== 'nothing') this.decisions.push({ ...decision, at: this.now });
    }
    return this;
  }
}

describe('machines', () => {
  test('SUP-050 one is asked for after sixty seconds of saturation without a break, and then not for five minutes', () => {
    const leader = new Leader();
    leader
      .look([machine('a', 90)], 57)
      .look([machine('a', 50)], 3)
      .look([machine('a', 90)], 60);
    expect(leader.decisions).toEqual([]);
    leader.look([machine('a', 90)], 3);
    expect(leader.decisions).toMatchObject([{ do: 'provision' }]);
    leader.look([machine('a', 90)], 297);
    expect(leader.decisions).toHaveLength(1);
    leader.look([machine('a', 90)], 6);
    expect(leader.decisions).toHaveLength(2);
  });

  test('SUP-050 none is asked for while the fleet is as large as it may be, or a machine could take more by itself', () => {
    const full = new Leader();
    full.settings.max = 1;
    expect(full.look([machine('a', 90)], 90).decisions).toMatchObject([{ do: 'full' }]);
    expect(new Leader().look([machine('a', 90)], 90, { inMachine: true }).decisions).toEqual([]);
  });

  test('SUP-053 what is there comes first: the least loaded that admits the workload', () => {
    const admits = (ip: string) => ip !== 'b';
    const leader = new Leader().look([machine('a', 90, 'stat'), machine('b', 5), machine('c', 40), machine('d', 20)], 63, { admits });
    expect(leader.decisions).toMatchObject([{ do: 'spawn', ip: 'd', service: 'stat' }]);
  });

  test('SUP-054 SUP-055 ten minutes of idleness give the newest back, and never the base', () => {
    const idle = [machine('a', 5), machine('b', 5), machine('c', 5)];
    const leader = new Leader().look(idle, 600);
    expect(leader.decisions).toEqual([]);
    expect(leader.look(idle, 3).decisions).toMatchObject([{ do: 'retire', ip: 'c' }]);
    expect(new Leader().look([machine('a', 5)], 2_000).decisions).toEqual([]);
    const kept = new Leader();
    kept.settings.min = 3;
    expect(kept.look(idle, 2_000).decisions).toEqual([]);
  });

  test('G-CAP-11 a fleet below its least size asks for one machine at a time, idle or not, and then gives none back', () => {
    const leader = new Leader();
    leader.settings.min = 2;
    leader.look([machine('a', 5)], 3);
    expect(leader.decisions).toMatchObject([{ do: 'provision', reason: '1 of at least 2 machines are there' }]);
    leader.look([machine('a', 5)], 297);
    expect(leader.decisions).toHaveLength(1);
    leader.look([machine('a', 5)], 3);
    expect(leader.decisions).toHaveLength(2);
    leader.look([machine('a', 5), machine('b', 5)], 2_000);
    expect(leader.decisions).toHaveLength(2);
  });

  test('G-CAP-11 a machine that cannot be had keeps no service from one that is there', () => {
    const leader = new Leader();
    leader.settings.min = 5;
    const [full, empty] = [machine('a', 90, 'stat'), machine('b', 5)];
    leader.look([machine('a', 5), empty], 240).look([full, empty], 120, { admits: ip => ip === 'b' });
    expect(leader.decisions).toMatchObject([{ do: 'provision' }, { do: 'spawn', ip: 'b', service: 'stat' }]);
  });

  test('SUP-051 SUP-052 profiles are auto, manual and never, and a word nobody knows adds nothing', () => {
    expect(['auto', 'manual', 'never', 'Auto', '', 'always'].map(profileOf)).toEqual([
      'auto',
      'manual',
      'never',
      'never',
      'never',
      'never',
    ]);
  });

  const busy = { isActive: true, cpu_pct: 180, mem_mb: 5_000 };
  const full = { cpu_pct: 100, mem_pct: 100, used_mb: 5_000 };

  test('SUP-047 SUP-078 inside a machine nothing scales: its thresholds are above every sample', () => {
    const entries = new Catalog({ runnable: () => [service('auth', 10)] }).entries();
    expect(entries).toMatchObject([{ service_type: 'auth', start_priority: 10, placement: [], singleton: false }]);
    for (const { provision } of entries) expect([provision.cpu_pct > 100, provision.mem_pct > 100]).toEqual([true, true]);
    expect(
      scaledInside(
        entries.map(entry => ({ ...entry, instances: [busy] })),
        full,
      ),
    ).toEqual([]);
  });

  test('SUP-048 with lower thresholds a service gets one more at a look, when all it has are in turn and busy, up to four', () => {
    const line = (service_type: string, instances: readonly (typeof busy)[], singleton = false) => ({
      service_type,
      provision: { cpu_pct: 80, mem_pct: 101 },
      singleton,
      instances,
    });
    const idle = { ...busy, cpu_pct: 79 };
    const starting = { ...busy, isActive: false };
    const services = [
      line('one', [busy]),
      line('three', [busy, busy, busy]),
      line('four', [busy, busy, busy, busy]),
      line('idle', [busy, idle]),
      line('starting', [busy, starting]),
      line('single', [busy], true),
      line('none', []),
    ];
    expect(scaledInside(services, full)).toEqual(['one', 'three']);
  });

  test('SUP-073 a machine is saturated from 85 % of its CPU or 90 % of its memory on', () => {
    const at = (cpu_pct: number, mem_pct: number) => isSaturated({ cpu_pct, mem_pct, used_mb: 1 });
    expect([at(84.9, 89.9), at(85, 0), at(0, 90)]).toEqual([false, true, true]);
  });
});
