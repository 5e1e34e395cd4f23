import { describe, expect, test } from 'vitest';
import {
  type FleetEffect,
  type FleetEvent,
  type FleetLife,
  type FleetSettings,
  NEW_FLEET,
  type Slot,
  stepFleet,
} from '../src/life/fleet-life.ts';
import { LIFE_SETTINGS, type LifeEvent } from '../src/life/instance-life.ts';
import { NEW_UPGRADE, stepUpgrade, UPGRADE_SETTINGS, type UpgradeEvent } from '../src/life/upgrade-life.ts';
import { Seeded } from '@platform/kernel/test/seeded';

const SETTINGS: FleetSettings = { life: LIFE_SETTINGS, upgrade: UPGRADE_SETTINGS, within: new Set(['captain']) };
const SEQUENCES = 1_000_000;

/** A machine on which the fleet is lived: it knows what runs and which timers there are, and refuses what may not be. */
class Machine {
  fleet: FleetLife = NEW_FLEET;
  readonly processes = new Set<string>();
  readonly preparing = new Set<string>();
  readonly timers = new Map<string, number>();
  readonly runTimers = new Set<string>();
  readonly prepared = new Map<string, number>();
  #slots = 0;
  wanted = false;
  story: FleetEvent[] = [];

  hear(event: FleetEvent): readonly FleetEffect[] {
    this.story.push(event);
    const { fleet, effects } = stepFleet(this.fleet, event, SETTINGS);
    this.fleet = fleet;
    for (const effect of effects) this.#carry(effect);
    return effects;
  }

  add(service: string): string {
    const slot = `${service}#${++this.#slots}`;
    this.hear({ type: 'add', slot, service, release: '' });
    this.hear({ type: 'slot', slot, event: { type: 'start' } });
    return slot;
  }

  upgrade(old: string): void {
    this.hear({ type: 'upgrade', old, next: `a#${++this.#slots}`, release: 'next' });
  }

  /** Something that can happen now, or that comes late. */
  happen(random: Seeded): void {
    const ids = Object.keys(this.fleet.slots);
    const dice = random.next();
    if (dice < 0.06 && ids.length > 0) return this.upgrade(random.pick(ids));
    if (dice < 0.1) {
      if (this.runTimers.has('a')) {
        this.runTimers.delete('a');
        this.hear({ type: 'run', service: 'a', event: { type: 'timer' } });
      }
      return;
    }
    if (dice < 0.13) return void this.hear({ type: 'run', service: 'a', event: random.pick(RUN_EVENTS) });
    if (ids.length === 0) return;
    const slot = random.pick(ids);
    const { attempt, phase } = (this.fleet.slots[slot] as Slot).life;
    const can: LifeEvent[] = [];
    if (this.timers.has(slot)) can.push({ type: 'timer', attempt: this.timers.get(slot) as number });
    if (phase === 'preparing' && this.preparing.has(slot))
      can.push({ type: 'prepared', attempt }, { type: 'prepared', attempt }, { type: 'failed', attempt, reason: 'no', absent: dice < 0.5 });
    if (this.processes.has(slot)) {
      can.push(
        { type: 'exited', attempt, reason: 'died' },
        { type: 'healthy', attempt },
        { type: 'healthy', attempt },
        { type: 'healthy', attempt },
      );
      can.push({ type: 'unhealthy', attempt, reason: 'answered 500', warming: dice < 0.3, age_ms: 130_000 });
    }
    if (can.length === 0) return;
    const event = random.pick(can);
    if (event.type === 'timer') this.timers.delete(slot);
    if (event.type === 'exited') this.processes.delete(slot);
    if (event.type === 'prepared' || event.type === 'failed') this.preparing.delete(slot);
    this.hear({ type: 'slot', slot, event });
  }

  #carry(effect: FleetEffect): void {
    if (effect.type === 'run') {
      if (effect.effect.do === 'arm') this.runTimers.add(effect.service);
      if (effect.effect.do === 'disarm') this.runTimers.delete(effect.service);
      return;
    }
    if (effect.type === 'gone') return this.#forget(effect.slot);
    if (effect.type !== 'slot') return;
    const { slot } = effect;
    switch (effect.effect.do) {
      case 'prepare':
        if (this.processes.has(slot)) throw new Error('prepared beside a process');
        this.preparing.add(slot);
        return;
      case 'spawn':
        if (this.processes.has(slot)) throw new Error('two processes of one instance');
        this.processes.add(slot);
        return;
      case 'arm':
        this.timers.set(slot, effect.effect.attempt);
        return;
      case 'disarm':
        this.timers.delete(slot);
        return;
      default:
    }
  }

  #forget(slot: string): void {
    this.timers.delete(slot);
    this.preparing.delete(slot);
  }

  /** What must hold after every event, as a fault or nothing. */
  fault(): string | undefined {
    let alive = 0;
    const { slots, upgrades } = this.fleet;
    for (const id in slots) {
      const { life, service } = slots[id] as Slot;
      if (service === 'captain') return 'it acts on the supervisor';
      const goesOn = this.processes.has(id) || this.preparing.has(id) || this.timers.has(id);
      const held = upgrades[service] !== undefined && this.runTimers.has(service);
      if (!goesOn && !(life.phase === 'lost' && held)) return `${id} is ${life.phase}, with nothing that leads on`;
      if (life.held && upgrades[service] === undefined) return `${id} is held by no upgrade`;
      if (life.restarts > LIFE_SETTINGS.maxRestarts) return 'restarted too often';
      alive += 1;
    }
    if (this.wanted && alive === 0) return 'the service has no instance and no attempt';
    let runs = 0;
    for (const service in upgrades) {
      runs += 1;
      const { old, next, upgrade } = upgrades[service] as FleetLife['upgrades'][string];
      if (!this.runTimers.has(service)) return 'an upgrade has no deadline';
      if (old === next || slots[next] === undefined) return 'an upgrade has no next instance';
      if (upgrade.stage === 'over') return 'an upgrade is over and still there';
    }
    return runs > 1 ? 'two upgrades of one service' : undefined;
  }
}

const RUN_EVENTS: readonly UpgradeEvent[] = [
  { type: 'told' },
  { type: 'quiet' },
  { type: 'old_ended' },
  { type: 'abort', reason: 'asked' },
  { type: 'rollback', reason: 'asked' },
  { type: 'errors', reason: 'too many' },
];

describe('a fleet, over a million histories', () => {
  test('SUP-046 SUP-066 SUP-067 a service is never without an instance and without a scheduled attempt, has never two upgrades, and the supervisor is never touched', () => {
    const seen = new Set<string>();
    let ends = 0;
    for (let seed = 0; seed < SEQUENCES; seed++) {
      const [machine, random] = [new Machine(), new Seeded(seed)];
      machine.add('a');
      machine.wanted = true;
      if ((seed & 7) === 0) machine.add('captain');
      // Most histories begin where an upgrade is worth anything: with an instance that serves.
      if ((seed & 3) !== 0) {
        for (const event of [
          { type: 'prepared', attempt: 1 },
          { type: 'healthy', attempt: 1 },
        ] as const)
          machine.hear({ type: 'slot', slot: 'a#1', event });
        machine.preparing.delete('a#1');
      }
      if ((seed & 1) === 1) machine.upgrade('a#1');
      for (let events = random.between(4, 16); events > 0; events--) {
        machine.happen(random);
        const fault = machine.fault();
        if (fault) throw new Error(`seed ${seed}: ${fault}\n${machine.story.map(each => JSON.stringify(each)).join('\n')}`);
      }
      const run = machine.fleet.upgrades['a'];
      if (run) seen.add(run.upgrade.stage);
      else if ((seed & 1) === 1) ends += 1;
    }
    // The histories reach everything there is to reach.
    expect([...seen].sort()).toEqual(['active', 'ending', 'quiet', 'seen', 'starting', 'told', 'under_load']);
    expect(ends).toBeGreaterThan(SEQUENCES / 20);
  }, 120_000);
});

describe('a rolling upgrade', () => {
  const begun = () => {
    const machine = new Machine();
    machine.add('a');
    for (const event of [
      { type: 'prepared', attempt: 1 },
      { type: 'healthy', attempt: 1 },
    ] as const)
      machine.hear({ type: 'slot', slot: 'a#1', event });
    machine.upgrade('a#1');
    return machine;
  };
  const next = (machine: Machine, ...types: ('prepared' | 'healthy')[]) => {
    for (const type of types) machine.hear({ type: 'slot', slot: 'a#2', event: { type, attempt: 1 } });
  };
  const timer = (machine: Machine) => machine.hear({ type: 'run', service: 'a', event: { type: 'timer' } });
  const told = (machine: Machine) => machine.hear({ type: 'run', service: 'a', event: { type: 'told' } });
  const phases = (effects: readonly FleetEffect[]) =>
    effects.flatMap(effect => (effect.type === 'run' && effect.effect.do === 'tell' ? [effect.effect.phase] : []));
  const arms = (effects: readonly FleetEffect[]) =>
    effects.flatMap(effect => (effect.type === 'run' && effect.effect.do === 'arm' ? [effect.effect.ms] : []));

  test('SUP-005 SUP-039 SUP-040 SUP-041 SUP-042 SUP-079 goes through every phase with its windows, and the old instance ends after routers have left it', () => {
    expect(UPGRADE_SETTINGS).toMatchObject({ activeMs: 120_000, stableMs: 60_000, drainMs: 30_000 });
    const machine = begun();
    expect(machine.fleet.upgrades['a']?.upgrade.phase).toBe('starting');
    next(machine, 'prepared');
    expect(machine.fleet.upgrades['a']?.upgrade.phase).toBe('spawned');
    const active = machine.hear({ type: 'slot', slot: 'a#2', event: { type: 'healthy', attempt: 1 } });
    expect([phases(active), arms(active)]).toEqual([['active'], [60_000]]);
    const stable = timer(machine);
    expect([phases(stable), machine.fleet.slots['a#1']?.life.phase]).toEqual([['stable'], 'inactive']);
    const heard = told(machine);
    expect([phases(heard), arms(heard)]).toEqual([['draining'], [3_000]]);
    expect(arms(timer(machine))).toEqual([30_000]);
    expect(machine.fleet.slots['a#1']?.life.phase).toBe('inactive');
    machine.hear({ type: 'run', service: 'a', event: { type: 'quiet' } });
    expect(machine.fleet.slots['a#1']?.life.phase).toBe('stopping');
    const gone = machine.hear({ type: 'slot', slot: 'a#1', event: { type: 'exited', attempt: 1, reason: 'ended (0)' } });
    expect([arms(gone), Object.keys(machine.fleet.slots)]).toEqual([[60_000], ['a#2']]);
    expect(phases(timer(machine))).toEqual(['complete']);
    expect([machine.fleet.upgrades, machine.fleet.slots['a#2']?.life.held]).toEqual([{}, false]);
  });

  test('SUP-039 a next instance that is not Active in 120 seconds ends the upgrade, and the old one goes on serving', () => {
    const machine = begun();
    next(machine, 'prepared');
    expect(phases(timer(machine))).toEqual(['aborted']);
    expect([machine.fleet.slots['a#1']?.life, machine.fleet.slots['a#2']?.life.phase]).toMatchObject([
      { phase: 'running', held: false },
      'stopping',
    ]);
  });

  test('SUP-043 an abort stops the next instance and its row goes; the old one was never touched', () => {
    const machine = begun();
    next(machine, 'prepared', 'healthy');
    expect(phases(machine.hear({ type: 'run', service: 'a', event: { type: 'abort', reason: 'an operator aborted it' } }))).toEqual([
      'aborted',
    ]);
    const ended = machine.hear({ type: 'slot', slot: 'a#2', event: { type: 'exited', attempt: 1, reason: 'ended (0)' } });
    expect(ended.filter(({ type }) => type === 'gone')).toEqual([{ type: 'gone', slot: 'a#2', service: 'a' }]);
    expect(machine.fleet.slots['a#1']?.life.phase).toBe('running');
  });

  test('SUP-044 a rollback while the old one is drained puts it back in turn', () => {
    const machine = begun();
    next(machine, 'prepared', 'healthy');
    timer(machine);
    expect(machine.fleet.slots['a#1']?.life.phase).toBe('inactive');
    const effects = machine.hear({ type: 'slot', slot: 'a#2', event: { type: 'exited', attempt: 1, reason: 'died' } });
    expect([phases(effects), machine.fleet.slots['a#1']?.life]).toMatchObject([['rolled_back'], { phase: 'running', held: false }]);
    expect(effects).toContainEqual({ type: 'slot', slot: 'a#1', effect: { do: 'up' } });
  });

  test('an old instance that the registry does not take out of turn is never told to end: the upgrade is taken back', () => {
    const machine = begun();
    next(machine, 'prepared', 'healthy');
    timer(machine);
    expect(phases(timer(machine))).toEqual(['rolled_back']);
    expect([machine.fleet.slots['a#1']?.life, machine.fleet.slots['a#2']?.life.phase]).toMatchObject([
      { phase: 'running', held: false },
      'stopping',
    ]);
  });

  test('SUP-044 under load and without the old one, the next one goes back to the release of the old one', () => {
    const machine = begun();
    next(machine, 'prepared', 'healthy');
    timer(machine);
    told(machine);
    timer(machine);
    timer(machine);
    machine.hear({ type: 'slot', slot: 'a#1', event: { type: 'exited', attempt: 1, reason: 'ended (0)' } });
    for (let times = 0; times < 3; times++)
      machine.hear({
        type: 'slot',
        slot: 'a#2',
        event: { type: 'unhealthy', attempt: 1, reason: 'answered 500', warming: false, age_ms: 1 },
      });
    expect(machine.fleet.slots['a#2']).toMatchObject({ release: '', life: { phase: 'ending', held: false } });
  });

  test('SUP-046 neither of the two is healed while the upgrade runs, and the old one is as soon as it is over', () => {
    const machine = begun();
    machine.hear({ type: 'slot', slot: 'a#1', event: { type: 'exited', attempt: 1, reason: 'died' } });
    expect(machine.fleet.slots['a#1']?.life.phase).toBe('lost');
    machine.hear({ type: 'run', service: 'a', event: { type: 'abort', reason: 'asked' } });
    expect(machine.fleet.slots['a#1']?.life).toMatchObject({ phase: 'waiting', restarts: 1 });
  });

  test('SUP-005 there is one at a time for a service, and none of the supervisor itself', () => {
    const machine = begun();
    expect(machine.hear({ type: 'upgrade', old: 'a#1', next: 'a#9', release: '' })).toEqual([
      { type: 'refused', code: 'upgrade_in_progress' },
    ]);
    expect(machine.hear({ type: 'add', slot: 'captain#1', service: 'captain', release: '' })).toEqual([
      { type: 'refused', code: 'self_target' },
    ]);
  });

  test('always ends, whatever is heard: every stage has a deadline that leads on', () => {
    for (let seed = 0; seed < 5_000; seed++) {
      const random = new Seeded(seed);
      let { upgrade } = stepUpgrade(NEW_UPGRADE, { type: 'begin' }, UPGRADE_SETTINGS);
      for (let turns = 0; turns < 12 && upgrade.stage !== 'over'; turns++) {
        const before = upgrade.stage;
        ({ upgrade } = stepUpgrade(upgrade, random.next() < 0.3 ? { type: 'spawned' } : { type: 'timer' }, UPGRADE_SETTINGS));
        if (before === 'starting' && random.next() < 0.5) ({ upgrade } = stepUpgrade(upgrade, { type: 'active' }, UPGRADE_SETTINGS));
      }
      for (let turns = 0; turns < 8; turns++) ({ upgrade } = stepUpgrade(upgrade, { type: 'timer' }, UPGRADE_SETTINGS));
      expect(upgrade.stage).toBe('over');
    }
  });
});
