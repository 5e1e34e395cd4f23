import { describe, expect, test } from 'vitest';
import { Seeded } from '@platform/kernel/test/seeded';
import { type Life, LIFE_SETTINGS, type LifeEffect, type LifeEvent, type LifeSettings, NEW_LIFE, step } from '../src/life/instance-life.ts';

/** A machine that the life is lived on: it keeps the one process, the one timer, and what may not be. */
class World {
  life: Life = NEW_LIFE;
  /** Attempt whose process lives. */
  process: number | undefined;
  armed: { attempt: number; ms: number } | undefined;
  preparing: number | undefined;
  prepared = new Set<number>();
  ended = 0;
  raised = 0;
  readonly said: LifeEffect[] = [];
  readonly heard: LifeEvent[] = [];
  readonly settings: LifeSettings;

  constructor(settings: Partial<LifeSettings> = {}) {
    this.settings = { ...LIFE_SETTINGS, ...settings };
  }

  hear(event: LifeEvent): void {
    this.heard.push(event);
    if (event.type === 'exited' && event.attempt === this.process) this.process = undefined;
    if (event.type === 'timer' && event.attempt === this.armed?.attempt) this.armed = undefined;
    if ((event.type === 'prepared' || event.type === 'failed') && event.attempt === this.preparing) this.preparing = undefined;
    if (event.type === 'prepared') this.prepared.add(event.attempt);
    const before = this.life;
    const { life, effects } = step(this.life, event, this.settings);
    this.life = life;
    for (const effect of effects) this.#carryOut(effect);
    this.#hold(before, event);
  }

  /** What can happen on a machine in this moment, and what comes late from the attempts before. */
  possible(random: Seeded): LifeEvent {
    const { attempt } = this.life;
    const absent = random.next() < 0.4;
    const events: LifeEvent[] = [
      { type: 'start' },
      { type: 'failed', attempt: attempt - 1, reason: 'late', absent },
      { type: 'healthy', attempt: attempt - 1 },
      { type: 'unhealthy', attempt: attempt - 1, reason: 'late', warming: false, age_ms: 1e9 },
      { type: 'prepared', attempt: attempt - 1 },
      { type: 'timer', attempt: attempt - 1 },
    ];
    if (random.next() < 0.02) events.push({ type: 'stop' });
    if (this.armed) events.push({ type: 'timer', attempt: this.armed.attempt }, { type: 'timer', attempt: this.armed.attempt });
    if (this.preparing !== undefined)
      events.push(
        { type: 'prepared', attempt: this.preparing },
        { type: 'prepared', attempt: this.preparing },
        { type: 'failed', attempt: this.preparing, reason: 'no', absent },
      );
    if (this.process !== undefined) {
      for (let times = 0; times < 2; times++)
        events.push({ type: 'exited', attempt: this.process, reason: 'died' }, { type: 'healthy', attempt: this.process });
      for (let times = 0; times < 2; times++)
        events.push({
          type: 'unhealthy',
          attempt: this.process,
          reason: 'answered 500',
          warming: random.next() < 0.3,
          age_ms: random.between(0, 200_000),
        });
      events.push({ type: 'failed', attempt: this.process, reason: 'unwell', absent });
    }
    return random.pick(events);
  }

  get story(): string {
    return this.heard
      .map(event => `${event.type}${'attempt' in event ? event.attempt : ''}${'absent' in event && event.absent ? '~' : ''}`)
      .join(' ');
  }

  #carryOut(effect: LifeEffect): void {
    this.said.push(effect);
    switch (effect.do) {
      case 'prepare':
        expect(this.process, this.story).toBeUndefined();
        this.preparing = effect.attempt;
        break;
      case 'spawn':
        expect([this.process, this.prepared.has(effect.attempt)], this.story).toEqual([undefined, true]);
        this.process = effect.attempt;
        break;
      case 'arm':
        this.armed = effect;
        break;
      case 'disarm':
        this.armed = undefined;
        break;
      case 'raise':
        this.raised += 1;
        break;
      case 'ended':
        this.ended += 1;
        break;
      default:
    }
  }

  #hold(before: Life, event: LifeEvent): void {
    const { phase, restarts, alert } = this.life;
    const wanted = this.heard.some(({ type }) => type === 'start') && phase !== 'stopped' && this.heard[0]?.type === 'start';
    if (wanted) {
      const goesOn = this.process !== undefined || this.preparing !== undefined || this.armed !== undefined;
      expect(goesOn || (phase === 'given_up' && this.settings.lastResortMs === 0), this.story).toBe(true);
    }
    expect(restarts, this.story).toBeLessThanOrEqual(this.settings.maxRestarts);
    if (event.type === 'failed' && event.absent && phase === 'waiting')
      expect([restarts, alert], this.story).toEqual([before.restarts, before.alert]);
    if (phase === 'running') expect([alert, this.process], this.story).toEqual([undefined, this.life.attempt]);
    if (phase === 'stopped') expect([this.armed, this.ended], this.story).toEqual([undefined, 1]);
  }
}

const lives = (settings: Partial<LifeSettings>, seeds: number, body: (world: World, random: Seeded) => void) => {
  for (let seed = 0; seed < seeds; seed++) {
    const [world, random] = [new World(settings), new Seeded(seed)];
    world.hear({ type: 'start' });
    for (let events = random.between(0, 120); events > 0; events--) world.hear(world.possible(random));
    body(world, random);
  }
};
/** The same service on a machine where everything works. */
const mend = (world: World) => {
  for (let turns = 0; turns < 10 && world.life.phase !== 'running'; turns++) {
    if (world.life.phase === 'ending') world.hear({ type: 'exited', attempt: world.process as number, reason: 'killed' });
    else if (world.preparing !== undefined && world.life.phase === 'preparing') world.hear({ type: 'prepared', attempt: world.preparing });
    else if (world.life.phase === 'starting') world.hear({ type: 'healthy', attempt: world.process as number });
    else if (world.armed) world.hear({ type: 'timer', attempt: world.armed.attempt });
  }
};

describe('the life of a supervised process, over a thousand histories', () => {
  test('F-02 F-03 never has two processes, spawns nothing unprepared, counts no absence, and is never without a process and without a next attempt', () => {
    lives({}, 400, () => undefined);
    lives({ lastResortMs: 0 }, 200, () => undefined);
  });

  test('F-03 SUP-029 comes back from anything that happened, once the machine works again', () => {
    lives({}, 200, world => {
      if (world.life.phase === 'stopped') return;
      mend(world);
      expect([world.life.phase, world.life.alert], world.story).toEqual(['running', undefined]);
    });
  });

  test('F-02 is over after a stop, whatever had happened, and even when its process never ends', () => {
    lives({}, 200, (world, random) => {
      if (world.life.phase !== 'stopped') world.hear({ type: 'stop' });
      const dies = random.next() < 0.5;
      for (let turns = 0; turns < 3 && world.life.phase !== 'stopped'; turns++) {
        if (dies && world.process !== undefined && world.said.some(effect => effect.do === 'kill' && effect.signal === 'SIGKILL'))
          world.hear({ type: 'exited', attempt: world.process, reason: 'killed' });
        else if (world.armed) world.hear({ type: 'timer', attempt: world.armed.attempt });
      }
      expect([world.life.phase, world.ended], world.story).toEqual(['stopped', 1]);
    });
  });
});

test('SUP-025 SUP-026 SUP-029 G-CAP-10 the numbers are those that were agreed on', () => {
  expect(LIFE_SETTINGS).toEqual({
    maxRestarts: 3,
    baseMs: 1_000,
    capMs: 16_000,
    stableMs: 300_000,
    prepareMs: 15_000,
    readyMs: 120_000,
    stopMs: 35_000,
    killMs: 5_000,
    lastResortMs: 300_000,
    maxFailures: 3,
    graceMs: 120_000,
  });
});

describe('a service that dies', () => {
  const dies = (world: World) => {
    world.hear({ type: 'prepared', attempt: world.life.attempt });
    world.hear({ type: 'healthy', attempt: world.life.attempt });
    world.hear({ type: 'exited', attempt: world.life.attempt, reason: 'ended (1)' });
    const waited = world.armed?.ms;
    world.hear({ type: 'timer', attempt: world.life.attempt });
    return waited;
  };
  const started = (settings: Partial<LifeSettings> = {}) => {
    const world = new World(settings);
    world.hear({ type: 'start' });
    return world;
  };

  test('SUP-025 SUP-026 SUP-027 SUP-029 is started again after 1, 2 and 4 seconds, then raises its alert and is tried once in 300', () => {
    const world = started();
    expect([dies(world), dies(world), dies(world), world.raised]).toEqual([1_000, 2_000, 4_000, 0]);
    expect([dies(world), world.raised, dies(world), world.raised]).toEqual([300_000, 1, 300_000, 2]);
  });

  test('SUP-025 waits 16 seconds at most', () => {
    const world = started({ maxRestarts: 8 });
    expect(Array.from({ length: 8 }, () => dies(world))).toEqual([1_000, 2_000, 4_000, 8_000, 16_000, 16_000, 16_000, 16_000]);
  });

  test('SUP-030 is not tried again where the last resort is off, until somebody starts it', () => {
    const world = started({ lastResortMs: 0 });
    for (let deaths = 0; deaths < 4; deaths++) dies(world);
    expect([world.life.phase, world.armed]).toEqual(['given_up', undefined]);
    world.hear({ type: 'start' });
    expect(world.life).toMatchObject({ phase: 'preparing', alert: 'ended (1)' });
  });

  test('SUP-032 keeps its alert until it runs, and only then loses it', () => {
    const world = started();
    for (let deaths = 0; deaths < 4; deaths++) dies(world);
    expect(world.life).toMatchObject({ phase: 'preparing', alert: 'ended (1)' });
    world.hear({ type: 'prepared', attempt: world.life.attempt });
    expect(world.life.alert).toBe('ended (1)');
    world.hear({ type: 'healthy', attempt: world.life.attempt });
    expect([world.life.alert, world.said.filter(effect => effect.do === 'clear').length]).toEqual([undefined, 1]);
  });

  test('G-CAP-10 has its restarts forgotten after 300 seconds without a death', () => {
    const world = started();
    dies(world);
    dies(world);
    world.hear({ type: 'prepared', attempt: world.life.attempt });
    world.hear({ type: 'healthy', attempt: world.life.attempt });
    expect([world.life.restarts, world.armed?.ms]).toEqual([2, 300_000]);
    world.hear({ type: 'timer', attempt: world.life.attempt });
    expect([world.life.phase, world.life.restarts]).toEqual(['running', 0]);
  });

  test('F-02 waits for a store that is away as long as it takes, and has lost nothing when it is back', () => {
    const world = started();
    const waits = Array.from({ length: 7 }, () => {
      world.hear({ type: 'failed', attempt: world.life.attempt, reason: 'connect ECONNREFUSED', absent: true });
      const waited = world.armed?.ms;
      world.hear({ type: 'timer', attempt: world.life.attempt });
      return waited;
    });
    expect([waits, world.life.restarts, world.raised]).toEqual([[1_000, 2_000, 4_000, 8_000, 16_000, 16_000, 16_000], 0, 0]);
    expect(dies(world)).toBe(1_000);
  });

  test.each<[string, (world: World) => void]>([
    ['it runs', world => world.hear({ type: 'healthy', attempt: world.life.attempt })],
    ['it dies', world => world.hear({ type: 'exited', attempt: world.life.attempt, reason: 'ended (1)' })],
    ['it is given up', world => Array.from({ length: 4 }, () => dies(world))],
  ])('F-02 an absence that is over when %s is waited for from the beginning the next time', (_, event) => {
    const world = started();
    const away = () => {
      world.hear({ type: 'failed', attempt: world.life.attempt, reason: 'connect ECONNREFUSED', absent: true });
      const waited = world.armed?.ms;
      world.hear({ type: 'timer', attempt: world.life.attempt });
      return waited;
    };
    expect([away(), away()]).toEqual([1_000, 2_000]);
    world.hear({ type: 'prepared', attempt: world.life.attempt });
    event(world);
    if (world.life.phase === 'running') world.hear({ type: 'exited', attempt: world.life.attempt, reason: 'ended (1)' });
    if (world.life.phase === 'waiting') world.hear({ type: 'timer', attempt: world.life.attempt });
    expect([world.life.phase, away()]).toEqual(['preparing', 1_000]);
  });

  test('F-02 a preparation that never ends is a store that is away; what it says later is not heard', () => {
    const world = started();
    const slow = world.life.attempt;
    world.hear({ type: 'timer', attempt: slow });
    expect(world.life).toMatchObject({ phase: 'waiting', restarts: 0, absences: 1 });
    world.hear({ type: 'timer', attempt: slow });
    world.hear({ type: 'prepared', attempt: slow });
    expect(world.life.phase).toBe('preparing');
  });

  test('F-02 one that does not get ready is killed, and its end awaited, before the next is made', () => {
    const world = started();
    world.hear({ type: 'prepared', attempt: 1 });
    world.hear({ type: 'timer', attempt: 1 });
    expect([world.life.phase, world.said.at(-2)]).toEqual(['ending', { do: 'kill', signal: 'SIGKILL' }]);
    world.hear({ type: 'timer', attempt: 1 });
    expect(world.life.phase).toBe('ending');
    world.hear({ type: 'exited', attempt: 1, reason: 'ended (SIGKILL)' });
    expect([world.life.phase, world.life.restarts, world.said.at(-1)]).toMatchObject([
      'waiting',
      1,
      { do: 'down', reason: 'did not get ready in 120 s' },
    ]);
  });
});

describe('looks at its health', () => {
  const up = (settings: Partial<LifeSettings> = {}) => {
    const world = new World(settings);
    world.hear({ type: 'start' });
    world.hear({ type: 'prepared', attempt: 1 });
    world.hear({ type: 'healthy', attempt: 1 });
    return world;
  };
  const unwell = (world: World, how: { warming: boolean; age_ms: number }) =>
    world.hear({ type: 'unhealthy', attempt: world.life.attempt, reason: 'ECONNREFUSED', ...how });

  test('SUP-080 the first healthy answer makes it Active, and a process that says it is ready is looked at at once', () => {
    const world = new World();
    world.hear({ type: 'start' });
    world.hear({ type: 'prepared', attempt: 1 });
    expect(world.life.phase).toBe('starting');
    world.hear({ type: 'ready', attempt: 1 });
    expect([world.life.phase, world.said.at(-1)]).toEqual(['starting', { do: 'look' }]);
    world.hear({ type: 'healthy', attempt: 1 });
    expect([world.life.phase, world.said.at(-1)]).toEqual(['running', { do: 'up' }]);
  });

  test('SUP-083 three in a row that fail kill it with SIGKILL; one that succeeds forgets those before', () => {
    const world = up();
    const failing = { warming: false, age_ms: 200_000 };
    unwell(world, failing);
    unwell(world, failing);
    world.hear({ type: 'healthy', attempt: 1 });
    expect(world.life.failures).toBe(0);
    unwell(world, failing);
    unwell(world, failing);
    expect([world.life.phase, world.life.failures]).toEqual(['running', 2]);
    unwell(world, failing);
    expect([world.life.phase, world.said.at(-2)]).toEqual(['ending', { do: 'kill', signal: 'SIGKILL' }]);
  });

  test('SUP-033 SUP-036 one that fails for warming up is forgiven for 120 seconds, and counts after them', () => {
    const world = up();
    unwell(world, { warming: false, age_ms: 1_000 });
    unwell(world, { warming: true, age_ms: 119_999 });
    expect(world.life.failures).toBe(0);
    for (let times = 0; times < 3; times++) unwell(world, { warming: true, age_ms: 120_000 });
    expect(world.life.phase).toBe('ending');
  });

  test('SUP-035 an answer that is no success is never forgiven', () => {
    const world = up();
    for (let times = 0; times < 3; times++) unwell(world, { warming: false, age_ms: 10 });
    expect(world.life.phase).toBe('ending');
  });

  test('SUP-033 a grace of 0 forgives nothing', () => {
    const world = up({ graceMs: 0 });
    for (let times = 0; times < 3; times++) unwell(world, { warming: true, age_ms: 0 });
    expect(world.life.phase).toBe('ending');
  });

  test('SUP-037 SUP-084 a process that is dead is healed, grace or not, out of every phase in which there is one', () => {
    for (const before of ['starting', 'running', 'inactive'] as const) {
      const world = up();
      if (before === 'inactive') world.hear({ type: 'drain' });
      if (before === 'starting') {
        world.hear({ type: 'exited', attempt: 1, reason: 'died' });
        world.hear({ type: 'timer', attempt: 1 });
        world.hear({ type: 'prepared', attempt: 2 });
      }
      expect(world.life.phase).toBe(before);
      world.hear({ type: 'exited', attempt: world.life.attempt, reason: 'ended (SIGKILL)' });
      expect([world.life.phase, world.armed?.ms]).toEqual(['waiting', before === 'starting' ? 2_000 : 1_000]);
    }
  });

  test('SUP-081 SUP-082 a drain takes it out of turn, a stop asks it to end, and its end is the end', () => {
    const world = up();
    world.hear({ type: 'drain' });
    expect([world.life.phase, world.said.at(-1)]).toEqual(['inactive', { do: 'drained' }]);
    world.hear({ type: 'stop' });
    expect([world.life.phase, world.said.at(-2)]).toEqual(['stopping', { do: 'kill', signal: 'SIGTERM' }]);
    world.hear({ type: 'exited', attempt: 1, reason: 'ended (0)' });
    expect([world.life.phase, world.ended]).toEqual(['stopped', 1]);
  });
});
