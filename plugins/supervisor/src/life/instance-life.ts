import { backoff } from './backoff.ts';

/*
 * The life of one instance of a service, as a value: what happened goes in, what is to be done comes out, and nothing here touches the
 * machine.
 *
 *   new → preparing → starting → running → (waiting → preparing → …)* → stopping → stopped
 *                                   ↕ inactive, while it is drained
 *
 * At most one process lives at a time, and an instance that is wanted has a process, a preparation under way or a timer that leads to one;
 * only an operator's setting of 0 ends that after it was given up (SUP-030), and an upgrade that holds it, which has a timer of its own
 * (SUP-046).
 */

export interface LifeSettings {
  /** Restarts before the alert (SUP-026). */
  readonly maxRestarts: number;
  readonly baseMs: number;
  readonly capMs: number;
  /** So long without a death, and the restarts are forgotten (C39). */
  readonly stableMs: number;
  readonly prepareMs: number;
  readonly readyMs: number;
  /** From SIGTERM to SIGKILL, and from SIGKILL to the end of our patience. */
  readonly stopMs: number;
  readonly killMs: number;
  /** Pace of attempts after the alert; 0 makes none (SUP-029, SUP-030). */
  readonly lastResortMs: number;
  /** Failed looks in a row before it is killed (SUP-083). */
  readonly maxFailures: number;
  /** So long after its start a failed look that comes of warming up is forgiven; 0 forgives none (SUP-033). */
  readonly graceMs: number;
}

export const LIFE_SETTINGS: LifeSettings = {
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
};

/** Why it is down. `absent`: a store or database was away, which counts nothing against the service. */
export interface Failure {
  readonly reason: string;
  readonly absent: boolean;
}

export type Phase =
  | 'new'
  | 'preparing'
  | 'starting'
  | 'running'
  | 'inactive'
  | 'ending'
  | 'waiting'
  | 'given_up'
  | 'lost'
  | 'stopping'
  | 'killing'
  | 'stopped';

export interface Life {
  readonly phase: Phase;
  /** Numbers the tries; what an earlier one says late is not heard. */
  readonly attempt: number;
  readonly restarts: number;
  readonly absences: number;
  /** Failed looks in a row. */
  readonly failures: number;
  /** Raised when it was given up, until it is running again (SUP-032). */
  readonly alert: string | undefined;
  /** Why the process has to go, while it is being killed; why it went, while an upgrade holds it. */
  readonly failure: Failure | undefined;
  /** An upgrade decides about it: it is not healed meanwhile (SUP-046). */
  readonly held: boolean;
}

export type LifeEvent =
  | { readonly type: 'start' | 'stop' | 'drain' | 'resume' | 'hold' | 'release' | 'restart' }
  /** It was found alive by a supervisor that did not start it. */
  | { readonly type: 'adopt' }
  | { readonly type: 'prepared' | 'ready' | 'timer' | 'healthy'; readonly attempt: number }
  | { readonly type: 'unhealthy'; readonly attempt: number; readonly reason: string; readonly warming: boolean; readonly age_ms: number }
  /** The preparation failed; or the process says so of itself. */
  | ({ readonly type: 'failed'; readonly attempt: number } & Failure)
  | { readonly type: 'exited'; readonly attempt: number; readonly reason: string };

/** There is one timer: arming it replaces the one before. */
export type LifeEffect =
  | { readonly do: 'prepare' | 'spawn'; readonly attempt: number }
  | { readonly do: 'kill'; readonly signal: 'SIGTERM' | 'SIGKILL' }
  | { readonly do: 'arm'; readonly attempt: number; readonly ms: number }
  /** `look`: ask for its health now. */
  | { readonly do: 'disarm' | 'look' | 'up' | 'clear' | 'ended' | 'drained' }
  | ({ readonly do: 'down'; readonly again_ms: number | undefined } & Failure)
  | { readonly do: 'lost'; readonly reason: string }
  | { readonly do: 'unwell'; readonly reason: string }
  | { readonly do: 'raise'; readonly reason: string; readonly restarts: number };

export interface Step {
  readonly life: Life;
  readonly effects: readonly LifeEffect[];
}

export const NEW_LIFE: Life = {
  phase: 'new',
  attempt: 0,
  restarts: 0,
  absences: 0,
  failures: 0,
  alert: undefined,
  failure: undefined,
  held: false,
};

/** What follows from an event. An event that means nothing in the present phase, or that comes from an earlier attempt, changes nothing. */
export function step(life: Life, event: LifeEvent, settings: LifeSettings): Step {
  if ('attempt' in event && event.attempt !== life.attempt) return { life, effects: [] };
  if (event.type === 'hold') return { life: { ...life, held: true }, effects: [] };
  if (event.type === 'release' && life.phase !== 'lost') return { life: { ...life, held: false }, effects: [] };
  return REACTIONS[life.phase]?.[event.type]?.(life, event as never, settings) ?? { life, effects: [] };
}

type EventOf<T extends LifeEvent['type']> = Extract<LifeEvent, { type: T }>;
type Reaction<E extends LifeEvent = LifeEvent> = (life: Life, event: E, settings: LifeSettings) => Step;

const to = (life: Life, ...effects: readonly LifeEffect[]): Step => ({ life, effects });

const prepare: Reaction = (life, _, { prepareMs }) => {
  const attempt = life.attempt + 1;
  return to(
    { ...life, phase: 'preparing', attempt, failures: 0, failure: undefined },
    { do: 'prepare', attempt },
    { do: 'arm', attempt, ms: prepareMs },
  );
};
const adopt: Reaction = (life, _, { readyMs }) => {
  const attempt = life.attempt + 1;
  return to({ ...life, phase: 'starting', attempt, failures: 0, failure: undefined }, { do: 'arm', attempt, ms: readyMs }, { do: 'look' });
};
const spawn: Reaction = (life, _, { readyMs }) =>
  to({ ...life, phase: 'starting' }, { do: 'spawn', attempt: life.attempt }, { do: 'arm', attempt: life.attempt, ms: readyMs });
/** A process that says that it is ready is looked at before its first fifteen seconds are over (SUP-080). */
const ready: Reaction = life => to(life, { do: 'look' });
const running: Reaction = (life, _, { stableMs }) =>
  to(
    { ...life, phase: 'running', absences: 0, failures: 0, alert: undefined },
    { do: 'arm', attempt: life.attempt, ms: stableMs },
    ...(life.alert === undefined ? [] : [{ do: 'clear' } as const]),
    {
      do: 'up',
    },
  );
const well: Reaction = life => to(life.failures === 0 ? life : { ...life, failures: 0 });
const stable: Reaction = life => to({ ...life, restarts: 0 });
const stopped: Reaction = life => to({ ...life, phase: 'stopped', held: false }, { do: 'disarm' }, { do: 'ended' });
const terminate: Reaction = (life, _, { stopMs }) =>
  to({ ...life, phase: 'stopping', held: false }, { do: 'kill', signal: 'SIGTERM' }, { do: 'arm', attempt: life.attempt, ms: stopMs });
const killAtStop: Reaction = (life, _, { killMs }) =>
  to({ ...life, phase: 'killing', held: false }, { do: 'kill', signal: 'SIGKILL' }, { do: 'arm', attempt: life.attempt, ms: killMs });
const drain: Reaction = life => to({ ...life, phase: 'inactive' }, { do: 'disarm' }, { do: 'drained' });
const resume: Reaction = (life, _, { stableMs }) =>
  to({ ...life, phase: 'running' }, { do: 'arm', attempt: life.attempt, ms: stableMs }, { do: 'up' });

/** What failed is killed, and its end awaited: no second process stands beside it. */
const end = (life: Life, failure: Failure, { killMs }: LifeSettings): Step =>
  to({ ...life, phase: 'ending', failure }, { do: 'kill', signal: 'SIGKILL' }, { do: 'arm', attempt: life.attempt, ms: killMs });

function down(life: Life, failure: Failure, { maxRestarts, baseMs, capMs, lastResortMs }: LifeSettings): Step {
  if (life.held) return to({ ...life, phase: 'lost', failure }, { do: 'disarm' }, { do: 'lost', reason: failure.reason });
  const wait = (next: Partial<Life>, ms: number): Step =>
    to(
      { ...life, ...next, phase: 'waiting', failure: undefined },
      { do: 'arm', attempt: life.attempt, ms },
      { do: 'down', again_ms: ms, ...failure },
    );
  if (failure.absent) return wait({ absences: life.absences + 1 }, backoff(life.absences, { baseMs, capMs }));
  if (life.alert === undefined && life.restarts < maxRestarts)
    return wait({ restarts: life.restarts + 1, absences: 0 }, backoff(life.restarts, { baseMs, capMs }));
  const raise = { do: 'raise', reason: failure.reason, restarts: life.restarts } as const;
  const given = { alert: failure.reason, absences: 0 };
  if (lastResortMs > 0) {
    const { life: next, effects } = wait(given, lastResortMs);
    return to(next, ...effects, raise);
  }
  return to(
    { ...life, ...given, phase: 'given_up', failure: undefined },
    { do: 'disarm' },
    { do: 'down', again_ms: undefined, ...failure },
    raise,
  );
}

const failed: Reaction<EventOf<'failed'>> = (life, { reason, absent }, settings) => down(life, { reason, absent }, settings);
const exited: Reaction<EventOf<'exited'>> = (life, { reason }, settings) => down(life, { reason, absent: false }, settings);
const unwell: Reaction<EventOf<'failed'>> = (life, { reason, absent }, settings) => end(life, { reason, absent }, settings);
/** An operator's restart is no failure: it ends, and is prepared anew. */
const restart: Reaction = (life, _, { stopMs }) =>
  to(
    { ...life, phase: 'ending', failure: { reason: 'was restarted', absent: true } },
    { do: 'kill', signal: 'SIGTERM' },
    { do: 'arm', attempt: life.attempt, ms: stopMs },
  );

/**
 * Three failed looks in a row outside the grace of its warm-up (SUP-033 to SUP-036, SUP-083). One that an upgrade holds is not killed for
 * it.
 */
const unhealthy: Reaction<EventOf<'unhealthy'>> = (life, { reason, warming, age_ms }, settings) => {
  if (warming && age_ms < settings.graceMs) return to({ ...life, failures: 0 });
  const failures = life.failures + 1;
  if (failures < settings.maxFailures) return to({ ...life, failures });
  if (life.held) return to({ ...life, failures }, { do: 'unwell', reason });
  return end({ ...life, failures }, { reason: `failed ${failures} looks at its health: ${reason}`, absent: false }, settings);
};

const REACTIONS: Readonly<Record<Phase, { readonly [T in LifeEvent['type']]?: Reaction<EventOf<T>> }>> = {
  new: { start: prepare, adopt, stop: stopped },
  preparing: {
    prepared: spawn,
    failed,
    timer: (life, _, settings) => down(life, { reason: `was not prepared in ${settings.prepareMs / 1_000} s`, absent: true }, settings),
    stop: stopped,
  },
  starting: {
    ready,
    healthy: running,
    unhealthy,
    failed: unwell,
    exited,
    timer: (life, _, settings) => end(life, { reason: `did not get ready in ${settings.readyMs / 1_000} s`, absent: false }, settings),
    stop: terminate,
    restart,
  },
  running: { exited, failed: unwell, healthy: well, unhealthy, timer: stable, drain, stop: terminate, restart },
  inactive: { exited, failed: unwell, healthy: well, unhealthy, resume, stop: terminate, restart },
  ending: {
    exited: (life, _, settings) => down(life, life.failure as Failure, settings),
    timer: (life, _, settings) => end(life, life.failure as Failure, settings),
    stop: killAtStop,
  },
  waiting: { timer: prepare, start: prepare, restart: prepare, stop: stopped },
  given_up: { start: prepare, restart: prepare, stop: stopped },
  lost: {
    release: (life, _, settings) => down({ ...life, held: false }, life.failure as Failure, settings),
    stop: stopped,
  },
  stopping: { exited: stopped, timer: killAtStop },
  killing: { exited: stopped, timer: stopped },
  stopped: {},
};
