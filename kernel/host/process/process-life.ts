import { backoff } from '../../base/backoff.ts';

/*
 * The life of one supervised process, as a value: what happened goes in, what is to be done comes out, and nothing here touches the machine.
 *
 *   new → preparing → starting → running → (waiting → preparing → …)* → stopping → stopped
 *
 * At most one process lives at a time, and a service that is wanted has a process, a preparation under way or a timer that leads to one; only an
 * operator's setting of 0 ends that after it was given up (SUP-030).
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
}

export const LIFE_SETTINGS: LifeSettings = {
  maxRestarts: 3,
  baseMs: 1_000,
  capMs: 16_000,
  stableMs: 300_000,
  prepareMs: 15_000,
  readyMs: 60_000,
  stopMs: 35_000,
  killMs: 5_000,
  lastResortMs: 300_000,
};

/** Why it is down. `absent`: a store or database was away, which counts nothing against the service. */
export interface Failure {
  readonly reason: string;
  readonly absent: boolean;
}

export type Phase = 'new' | 'preparing' | 'starting' | 'running' | 'ending' | 'waiting' | 'given_up' | 'stopping' | 'killing' | 'stopped';

export interface Life {
  readonly phase: Phase;
  /** Numbers the tries; what an earlier one says late is not heard. */
  readonly attempt: number;
  readonly restarts: number;
  readonly absences: number;
  /** Raised when it was given up, until it is running again (SUP-032). */
  readonly alert: string | undefined;
  /** Why the process has to go, while it is being killed. */
  readonly failure: Failure | undefined;
}

export type LifeEvent =
  | { readonly type: 'start' | 'stop' }
  | { readonly type: 'prepared' | 'ready' | 'timer'; readonly attempt: number }
  /** The preparation failed; or the process says so of itself, or is found unwell. */
  | ({ readonly type: 'failed'; readonly attempt: number } & Failure)
  | { readonly type: 'exited'; readonly attempt: number; readonly reason: string };

/** There is one timer: arming it replaces the one before. */
export type LifeEffect =
  | { readonly do: 'prepare' | 'spawn'; readonly attempt: number }
  | { readonly do: 'kill'; readonly signal: 'SIGTERM' | 'SIGKILL' }
  | { readonly do: 'arm'; readonly attempt: number; readonly ms: number }
  | { readonly do: 'disarm' | 'up' | 'clear' | 'ended' }
  | ({ readonly do: 'down'; readonly again_ms: number | undefined } & Failure)
  | { readonly do: 'raise'; readonly reason: string; readonly restarts: number };

export interface Step {
  readonly life: Life;
  readonly effects: readonly LifeEffect[];
}

export const NEW_LIFE: Life = { phase: 'new', attempt: 0, restarts: 0, absences: 0, alert: undefined, failure: undefined };

/** What follows from an event. An event that means nothing in the present phase, or that comes from an earlier attempt, changes nothing. */
export function step(life: Life, event: LifeEvent, settings: LifeSettings): Step {
  if ('attempt' in event && event.attempt !== life.attempt) return { life, effects: [] };
  return REACTIONS[life.phase]?.[event.type]?.(life, event as never, settings) ?? { life, effects: [] };
}

type EventOf<T extends LifeEvent['type']> = Extract<LifeEvent, { type: T }>;
type Reaction<E extends LifeEvent = LifeEvent> = (life: Life, event: E, settings: LifeSettings) => Step;

const to = (life: Life, ...effects: readonly LifeEffect[]): Step => ({ life, effects });

const prepare: Reaction = (life, _, { prepareMs }) => {
  const attempt = life.attempt + 1;
  return to({ ...life, phase: 'preparing', attempt, failure: undefined }, { do: 'prepare', attempt }, { do: 'arm', attempt, ms: prepareMs });
};
const spawn: Reaction = (life, _, { readyMs }) => to({ ...life, phase: 'starting' }, { do: 'spawn', attempt: life.attempt }, { do: 'arm', attempt: life.attempt, ms: readyMs });
const running: Reaction = (life, _, { stableMs }) =>
  to({ ...life, phase: 'running', absences: 0, alert: undefined }, { do: 'arm', attempt: life.attempt, ms: stableMs }, ...(life.alert === undefined ? [] : [{ do: 'clear' } as const]), { do: 'up' });
const stable: Reaction = life => to({ ...life, restarts: 0 });
const stopped: Reaction = life => to({ ...life, phase: 'stopped' }, { do: 'disarm' }, { do: 'ended' });
const terminate: Reaction = (life, _, { stopMs }) => to({ ...life, phase: 'stopping' }, { do: 'kill', signal: 'SIGTERM' }, { do: 'arm', attempt: life.attempt, ms: stopMs });
const killAtStop: Reaction = (life, _, { killMs }) => to({ ...life, phase: 'killing' }, { do: 'kill', signal: 'SIGKILL' }, { do: 'arm', attempt: life.attempt, ms: killMs });

/** What failed is killed, and its end awaited: no second process stands beside it. */
const end = (life: Life, failure: Failure, { killMs }: LifeSettings): Step =>
  to({ ...life, phase: 'ending', failure }, { do: 'kill', signal: 'SIGKILL' }, { do: 'arm', attempt: life.attempt, ms: killMs });

function down(life: Life, failure: Failure, { maxRestarts, baseMs, capMs, lastResortMs }: LifeSettings): Step {
  const wait = (next: Partial<Life>, ms: number): Step =>
    to({ ...life, ...next, phase: 'waiting', failure: undefined }, { do: 'arm', attempt: life.attempt, ms }, { do: 'down', again_ms: ms, ...failure });
  if (failure.absent) return wait({ absences: life.absences + 1 }, backoff(life.absences, { baseMs, capMs }));
  if (life.alert === undefined && life.restarts < maxRestarts) return wait({ restarts: life.restarts + 1, absences: 0 }, backoff(life.restarts, { baseMs, capMs }));
  const raise = { do: 'raise', reason: failure.reason, restarts: life.restarts } as const;
  const given = { alert: failure.reason, absences: 0 };
  if (lastResortMs > 0) {
    const { life: next, effects } = wait(given, lastResortMs);
    return to(next, ...effects, raise);
  }
  return to({ ...life, ...given, phase: 'given_up', failure: undefined }, { do: 'disarm' }, { do: 'down', again_ms: undefined, ...failure }, raise);
}

const failed: Reaction<EventOf<'failed'>> = (life, { reason, absent }, settings) => down(life, { reason, absent }, settings);
const exited: Reaction<EventOf<'exited'>> = (life, { reason }, settings) => down(life, { reason, absent: false }, settings);
const unwell: Reaction<EventOf<'failed'>> = (life, { reason, absent }, settings) => end(life, { reason, absent }, settings);

const REACTIONS: Readonly<Record<Phase, { readonly [T in LifeEvent['type']]?: Reaction<EventOf<T>> }>> = {
  new: { start: prepare, stop: stopped },
  preparing: {
    prepared: spawn,
    failed,
    timer: (life, _, settings) => down(life, { reason: `was not prepared in ${settings.prepareMs / 1_000} s`, absent: true }, settings),
    stop: stopped,
  },
  starting: {
    ready: running,
    failed: unwell,
    exited,
    timer: (life, _, settings) => end(life, { reason: `did not get ready in ${settings.readyMs / 1_000} s`, absent: false }, settings),
    stop: terminate,
  },
  running: { exited, failed: unwell, timer: stable, stop: terminate },
  ending: {
    exited: (life, _, settings) => down(life, life.failure as Failure, settings),
    timer: (life, _, settings) => end(life, life.failure as Failure, settings),
    stop: killAtStop,
  },
  waiting: { timer: prepare, start: prepare, stop: stopped },
  given_up: { start: prepare, stop: stopped },
  stopping: { exited: stopped, timer: killAtStop },
  killing: { exited: stopped, timer: stopped },
  stopped: {},
};
