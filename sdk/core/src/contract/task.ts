import type { TSchema } from 'typebox';

/** Work that is queued with the change it follows from, and done afterwards at least once, by whatever process of the service is free. */
export interface TaskDef<S extends TSchema = TSchema> {
  readonly summary: string;
  readonly payload: S;
  /**
   * Tries before it is put with the dead, the first included; 5 when absent. One that is unlimited is tried for ever, whatever the refusal
   * says.
   */
  readonly attempts?: number | 'unlimited';
  /** Seconds between tries; the last counts for all that follow. `[5, 30, 120, 600]` when absent. */
  readonly backoff?: readonly number[];
  /** `env`: each environment has a lane of its own, and no lane makes another wait. `one` lane for all when absent. */
  readonly lane?: 'env' | 'one';
  /** How long one try may last, such as `30s`; `1m` when absent. */
  readonly timeout?: string;
  /** How many of one lane run at once in a process; 4 when absent. 1 keeps the order in which they fell due. */
  readonly abreast?: number;
  /**
   * Room of its own: how many of it run at once in a process, beside all others and never instead of them. It shares eight places with the
   * others when absent.
   */
  readonly slots?: number;
  /** The contract's key that seals what it carries, for as long as it waits: what it carries is personal, or a secret. */
  readonly sealed?: string;
  /** How long a finished task is still shown, such as `7d`; not at all when absent. */
  readonly keep?: string;
  /** How long a dead task lies there, such as `1d`; until somebody decides about it when absent. For what carries something personal. */
  readonly keepDead?: string;
}

/** Declares a task with the schema of its payload. */
export function task<const S extends TSchema, const O extends Omit<TaskDef, 'payload'>>(
  payload: S,
  options: O,
): O & { readonly payload: S } {
  return { payload, ...options };
}

/** Work that comes again: at a pace, or at the times of a cron expression. */
export interface JobDef {
  readonly summary: string;
  /** Time between runs, such as `10s`. Either this or `cron`. */
  readonly every?: string;
  /** Five fields of minute, hour, day, month, weekday. A time that passed while nothing ran is made up for once. */
  readonly cron?: string;
  /** IANA zone of `cron`; UTC when absent. */
  readonly timezone?: string;
  /** After this long its signal ends and the run counts as failed, such as `5m`; none when absent. */
  readonly timeout?: string;
  /** `fleet`: one process at a time. `process`: each for itself; not with `cron`. */
  readonly runs: 'fleet' | 'process';
}
