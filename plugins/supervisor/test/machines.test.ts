import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { InstanceRow, Runnable } from '@platform/sdk';
import { connectKeyValue, ManualClock, openTestStores, type TestStores } from '@platform/testing';
import { Redis } from 'ioredis';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { keyValuePort } from '@platform/kernel/host/service/key-value-port';
import { MachineLoad } from '@platform/kernel/host/machine/process-usage';
import type { SupervisorContext } from '../src/context.ts';
import type { ControlGate } from '../src/control/control-gate.ts';
import { Catalog } from '../src/fleet/catalog.ts';
import { HostSamples, isSaturated } from '../src/machines/host-samples.ts';
import { Leadership } from '../src/machines/leadership.ts';
import { Machines, type Provisioner } from '../src/machines/machines.ts';
import type { Supervisor } from '../src/supervisor.ts';
import { service } from './fixtures/machine-box.ts';

let stores: TestStores;
let redis: Redis;
let kv: Awaited<ReturnType<typeof keyValuePort>>;
let close: () => Promise<void>;
const scratch = mkdtempSync(join(tmpdir(), 'platform-test-'));
beforeAll(async () => {
  stores = await openTestStores();
  redis = new Redis(stores.stores.keyValueUrl);
  const store = await connectKeyValue(stores.stores.keyValueUrl);
  kv = await keyValuePort(store);
  close = async () => {
    await kv[Symbol.asyncDispose]();
    await store.close();
  };
});
beforeEach(() => redis.flushall());
afterAll(async () => {
  redis?.disconnect();
  await close?.();
  await stores?.[Symbol.asyncDispose]();
  rmSync(scratch, { recursive: true, force: true });
});

/** A fleet whose machines only say what they need, under the leader that is to be tried; the store is real, and time is advanced. */
class FleetUnderTest {
  readonly clock: ManualClock;
  readonly made: string[] = [];
  readonly destroyed: string[] = [];
  /** Names by address, of those that are there. */
  readonly there = new Map<string, string>();
  /** What was done about machines, in its order. */
  readonly steps: string[] = [];
  /** A machine that is to leave does not answer. */
  deaf = false;
  readonly asked: { service: string; path: string; as: string | undefined; at: { ip: string } | undefined; body: unknown }[] = [];
  readonly alerts: { alert: string; reason: string }[] = [];
  readonly samples = new HostSamples(kv);
  readonly load = new Map<string, number>();
  services: Runnable[] = [service('stat', 30)];
  rows: InstanceRow[] = [];
  unable: string | undefined;
  /** Machines are made when this is over. */
  making: Promise<void> | undefined;
  readonly machines: Machines;

  constructor(
    profile: string,
    {
      ip = '10.0.0.1',
      minMachines = 1,
      maxMachines = 3,
      clock = new ManualClock(),
    }: { ip?: string; minMachines?: number; maxMachines?: number; clock?: ManualClock } = {},
  ) {
    this.clock = clock;
    const line = (fields: object) => {
      if ('alert' in fields) this.alerts.push(fields as never);
    };
    const ctx = {
      config: { provisionProfile: profile, minMachines, maxMachines },
      kv,
      clock,
      log: { debug: () => undefined, info: () => undefined, warn: () => undefined, error: line },
      processes: { ip, instances: { rows: async () => this.#supervisors() } },
      backends: {
        fetch: async (name: string, path: string, init: { as?: string; at?: { ip: string }; body?: string }) => {
          this.asked.push({
            service: name,
            path,
            as: init.as,
            at: init.at,
            body: init.body === undefined ? undefined : JSON.parse(init.body),
          });
          this.steps.push(path);
          if (this.deaf) throw new Error('connect ECONNREFUSED');
          return new Response(null, { status: 202 });
        },
      },
      problem: (code: string) => Object.assign(new Error(code), { code }),
    } as unknown as SupervisorContext;
    const gate = { pass: async (_question: object, _steps: object, work: () => Promise<unknown>) => work() } as unknown as ControlGate;
    const supervisor = {
      ctx,
      samples: this.samples,
      catalog: new Catalog({ runnable: () => this.services }),
      rows: async () => this.rows,
      edgeIp: async () => '10.0.0.1',
      growing: [],
    } as unknown as Supervisor;
    const provisioner: Provisioner = {
      kind: 'test',
      unable: () => this.unable,
      create: async name => {
        await this.making;
        const made = `10.0.0.${this.made.length + 2}`;
        this.made.push(name);
        this.there.set(made, name);
        await this.joins(made);
        return made;
      },
      destroy: async gone => {
        this.destroyed.push(gone);
        this.steps.push(`destroy ${gone}`);
        this.there.delete(gone);
      },
      names: () => [...this.there.values()],
    };
    this.machines = new Machines(supervisor, gate, provisioner);
  }

  async joins(ip: string, cpu = 5): Promise<void> {
    await this.samples.join(ip);
    this.load.set(ip, cpu);
  }

  /** Everything says what it needs, and whoever leads looks at it, every three seconds. */
  async pass(seconds: number): Promise<void> {
    for (let left = seconds; left > 0; left -= 3) {
      await this.clock.advance('3s');
      for (const [ip, cpu_pct] of this.load) {
        const usage = { cpu_pct, mem_pct: 10, used_mb: 100 };
        await this.samples.publish({
          ip,
          ...usage,
          saturated: isSaturated(usage),
          saturated_service: isSaturated(usage) ? 'stat' : null,
          sampled_at: this.clock.now().toISOString(),
        });
      }
      await this.machines.tick();
      await this.machines.settled();
    }
  }

  #supervisors(): InstanceRow[] {
    return [...this.load.keys()].map(ip => ({ service_type: 'captain', ip, port: 1, status: 'Active' }) as InstanceRow);
  }
}

describe('the machines of the fleet', () => {
  test('SUP-050 SUP-053 SUP-054 SUP-055 SUP-056 SUP-105 from saturation to a machine, from it to a service on it, and back when all is idle', async () => {
    const fleet = new FleetUnderTest('auto', { maxMachines: 2 });
    await fleet.joins('10.0.0.1', 95);
    await fleet.pass(63);
    expect([fleet.made, await redis.lrange('captain:provision:order', 0, -1)]).toEqual([['platform-2'], ['10.0.0.1', '10.0.0.2']]);
    // Still saturated: the machine that is there now takes the service, over the channel that may do nothing else.
    await fleet.pass(363);
    expect(fleet.asked).toEqual([
      {
        service: 'captain',
        path: '/v1/captain/instances',
        as: 'remote',
        at: expect.objectContaining({ ip: '10.0.0.2' }),
        body: { service_types: ['stat'] },
      },
    ]);
    fleet.load.set('10.0.0.1', 5);
    fleet.deaf = true;
    await fleet.pass(603);
    expect(fleet.steps.slice(-2)).toEqual(['/v1/captain/shutdown', 'destroy 10.0.0.2']);
    expect(fleet.asked.at(-1)).toMatchObject({ path: '/v1/captain/shutdown', at: { ip: '10.0.0.2' } });
    expect([fleet.destroyed, await redis.lrange('captain:provision:order', 0, -1), await redis.exists('captain:host:10.0.0.2')]).toEqual([
      ['10.0.0.2'],
      ['10.0.0.1'],
      0,
    ]);
    fleet.load.delete('10.0.0.2');
    await fleet.pass(1_300);
    expect(fleet.destroyed).toEqual(['10.0.0.2']);
  });

  test('SUP-049 SUP-112 are judged by one leader, whose lock lasts thirty seconds and passes on', async () => {
    const clock = new ManualClock();
    const first = new FleetUnderTest('auto', { ip: '10.0.0.1', clock });
    const second = new FleetUnderTest('auto', { ip: '10.0.0.2', clock });
    await first.machines.tick();
    await second.machines.tick();
    expect([
      (await second.machines.state()).leader_ip,
      (await redis.ttl('captain:lock:machines')) > 25,
      (await redis.ttl('captain:lock:machines')) <= 30,
    ]).toEqual(['10.0.0.1', true, true]);
    await first.machines.leave();
    await second.machines.tick();
    expect((await first.machines.state()).leader_ip).toBe('10.0.0.2');
  });

  test('SUP-049 SUP-112 the lead is kept while a machine is made, which takes longer than the lock lasts', async () => {
    const fleet = new FleetUnderTest('manual');
    await fleet.joins('10.0.0.1', 5);
    const { promise, resolve } = Promise.withResolvers<void>();
    fleet.making = promise;
    await fleet.machines.tick();
    await redis.hset(
      'captain:provision:approved',
      'provision:next',
      JSON.stringify({ key: 'provision:next', kind: 'provision', reason: 'asked' }),
    );
    await fleet.machines.tick();
    await redis.expire('captain:lock:machines', 1);
    await fleet.machines.tick();
    expect(await redis.ttl('captain:lock:machines')).toBeGreaterThan(25);
    resolve();
    await fleet.machines.settled();
    expect(fleet.made).toEqual(['platform-2']);
  });

  test('SUP-049 a lead that runs out just when it is renewed or given back stays with whoever takes it then', async () => {
    const key = 'captain:lock:machines';
    // Between any two of its commands the lock runs out and another machine takes it.
    const slow = {
      ...kv,
      call: async (...command: Parameters<typeof kv.call>) =>
        kv.call(...command).finally(() => command[0] === 'GET' && redis.set(key, '10.0.0.2', 'EX', 30)),
    };
    const lead = new Leadership(slow as never, '10.0.0.1');
    await redis.set(key, '10.0.0.1', 'EX', 30);
    expect([await lead.hold(), await redis.get(key)]).toEqual([true, '10.0.0.1']);
    await redis.set(key, '10.0.0.1', 'EX', 30);
    await lead.leave();
    await redis.set(key, '10.0.0.2', 'EX', 30, 'NX');
    expect([await lead.hold(), await redis.get(key)]).toEqual([false, '10.0.0.2']);
  });

  test('SUP-051 SUP-076 SUP-100 wait under the profile manual for somebody’s word, for an hour', async () => {
    const fleet = new FleetUnderTest('manual');
    await fleet.joins('10.0.0.1', 95);
    await fleet.pass(63);
    expect(fleet.made).toEqual([]);
    expect(await redis.hkeys('captain:provision:pending')).toEqual(['provision:next']);
    const [pending] = (await fleet.machines.state()).pending;
    expect(pending).toMatchObject({
      key: 'provision:next',
      kind: 'provision',
      reason: expect.stringContaining('10.0.0.1 (stat) saturated'),
    });
    expect(Date.parse(pending!.expires_at) - Date.parse(pending!.created_at)).toBe(3_600_000);
    const asker = { channel: 'socket', uid: 0 } as const;
    expect(await fleet.machines.decide('provision:next', 'approve', asker)).toEqual({ key: 'provision:next', decision: 'approve' });
    await fleet.pass(3);
    expect(fleet.made).toEqual(['platform-2']);
    await expect(fleet.machines.decide('provision:next', 'approve', asker)).rejects.toMatchObject({ code: 'pending_not_found' });
    await fleet.pass(303);
    fleet.load.set('10.0.0.1', 50);
    await fleet.clock.advance('61m');
    expect((await fleet.machines.state()).pending).toEqual([]);
  });

  test('a new machine never gets the name of one that is there, whichever was taken away', async () => {
    const fleet = new FleetUnderTest('manual', { maxMachines: 4 });
    await fleet.joins('10.0.0.1', 95);
    const asker = { channel: 'socket', uid: 0 } as const;
    const grown = async () => {
      const before = fleet.made.length;
      for (let minutes = 0; minutes < 30 && !(await redis.hexists('captain:provision:pending', 'provision:next')); minutes++)
        await fleet.pass(60);
      await fleet.machines.decide('provision:next', 'approve', asker);
      await fleet.pass(3);
      expect(fleet.made).toHaveLength(before + 1);
      for (const ip of fleet.load.keys()) fleet.load.set(ip, 95);
    };
    await grown();
    await grown();
    await fleet.samples.leave('10.0.0.2');
    fleet.load.delete('10.0.0.2');
    fleet.there.delete('10.0.0.2');
    await grown();
    expect(fleet.made).toEqual(['platform-2', 'platform-3', 'platform-2']);
  });

  test('SUP-052 SUP-108 are not added under never or a word nobody knows, and it is said what would have been', async () => {
    for (const profile of ['never', 'allways']) {
      await redis.flushall();
      const fleet = new FleetUnderTest(profile);
      await fleet.joins('10.0.0.1', 95);
      await fleet.pass(63);
      expect([fleet.made, fleet.alerts.map(({ alert }) => alert), await redis.exists('captain:provision:pending')]).toEqual([
        [],
        ['captain.provision.dry_run'],
        0,
      ]);
    }
  });

  test('G-CAP-11 are added up to the least size of the fleet, which the page shows; a least above the most is refused', async () => {
    const fleet = new FleetUnderTest('auto', { minMachines: 2 });
    await fleet.joins('10.0.0.1', 5);
    await fleet.pass(3);
    expect([fleet.made, await fleet.machines.state()]).toMatchObject([['platform-2'], { min: 2, max: 3 }]);
    await fleet.pass(2_000);
    expect(fleet.made).toHaveLength(1);
    expect(() => new FleetUnderTest('auto', { minMachines: 4 })).toThrow(/PLATFORM_CAPTAIN_MIN_MACHINES is 4 .*MAX_MACHINES 3/);
  });

  test('SUP-108 a fleet that is full, or has nothing to make machines with, says so in one line', async () => {
    const full = new FleetUnderTest('auto', { maxMachines: 1 });
    await full.joins('10.0.0.1', 95);
    await full.pass(63);
    expect(full.alerts).toMatchObject([{ alert: 'captain.scale.capacity', reason: expect.stringContaining('saturated') }]);
    await redis.flushall();
    const without = new FleetUnderTest('auto');
    without.unable = 'Neither tofu nor terraform is on PATH.';
    await without.joins('10.0.0.1', 95);
    await without.pass(63);
    expect([without.made, without.alerts]).toMatchObject([
      [],
      [{ alert: 'captain.scale.capacity', reason: 'Neither tofu nor terraform is on PATH.' }],
    ]);
  });
});

test('SUP-060 a container reports its own accounting, by either version of control groups', () => {
  const [two, one] = [join(scratch, 'v2'), join(scratch, 'v1')];
  mkdirSync(two);
  for (const folder of ['cpuacct', 'memory']) mkdirSync(join(one, folder), { recursive: true });
  let now = 1_000;
  const write = (usage_us: number) => {
    writeFileSync(join(two, 'cpu.stat'), `usage_usec ${usage_us}\n`);
    writeFileSync(join(one, 'cpuacct', 'cpuacct.usage'), String(usage_us * 1_000));
  };
  writeFileSync(join(two, 'memory.current'), '104857600\n');
  writeFileSync(join(two, 'memory.max'), '209715200\n');
  writeFileSync(join(two, 'cpu.max'), '100000 100000\n');
  writeFileSync(join(one, 'memory', 'memory.usage_in_bytes'), '104857600');
  writeFileSync(join(one, 'memory', 'memory.limit_in_bytes'), '209715200');
  for (const root of [two, one]) {
    now = 1_000;
    write(0);
    const load = new MachineLoad(root, () => now);
    load.look('cgroup');
    write(500_000);
    now += 1_000;
    expect(load.look('cgroup')).toMatchObject({ mem_pct: 50, used_mb: 100, ...(root === two ? { cpu_pct: 50 } : {}) });
  }
  // Where there is no such accounting, the machine's own is better than none.
  expect(new MachineLoad(join(scratch, 'none')).look('cgroup').used_mb).toBeGreaterThan(0);
});
