import { isProblem, type Logger, milliseconds, type TaskDef, type TaskRun } from '@platform/sdk';
import type { Clock } from '../base/clock.ts';
import type { PostgresPool } from '../storage/postgres/postgres-pool.ts';
import { inScope } from '../telemetry/request-scope.ts';
import { failureReason } from './failure-reason.ts';
import type { TakenTask, TaskStore } from './task-store.ts';

export type TaskWork = (payload: never, run: TaskRun) => Promise<void>;
export interface RunnableTask {
  readonly def: TaskDef;
  readonly work: TaskWork;
  /** Opens what is sealed; `undefined` when the key is not known any more. */
  readonly open?: ((payload: unknown) => unknown) | undefined;
}
/** What the tasks of one service run with in one process. */
export interface TaskWorkParts {
  readonly service: string;
  readonly tasks: Readonly<Record<string, RunnableTask>>;
  readonly pool: PostgresPool;
  readonly clock: Clock;
  readonly log: Logger;
  /** Names this process, for leases. */
  readonly worker: string;
}
export interface TaskTryParts extends TaskWorkParts {
  readonly store: TaskStore;
  /** What ends while the process stops is given back, and counts as no try. */
  readonly isStopping: () => boolean;
}

/** A handler that does not heed its signal is left behind after this long. */
export const GRACE_MS = 5_000;
const ATTEMPTS = 5;
const BACKOFF_S: readonly number[] = [5, 30, 120, 600];

const attemptsOf = ({ attempts = ATTEMPTS }: TaskDef): number => (attempts === 'unlimited' ? Number.POSITIVE_INFINITY : attempts);

/** One try of a task in this process, and what is written down of its end. */
export class TaskTry {
  readonly task: TakenTask;
  readonly #parts: TaskTryParts;
  readonly #runnable: RunnableTask;
  readonly #ending = new AbortController();
  readonly #left = Promise.withResolvers<never>();
  #isLost = false;
  #isFinished = false;

  constructor(parts: TaskTryParts, task: TakenTask) {
    this.task = task;
    this.#parts = parts;
    this.#runnable = parts.tasks[task.name] as RunnableTask;
  }

  /** Tells the handler to end. */
  abort(): void {
    this.#ending.abort();
  }

  /** Goes on without the handler. */
  leave(reason: Error): void {
    this.#left.reject(reason);
  }

  /** The task is this worker's no more: its end is somebody else's to write down. */
  lose(): void {
    if (this.#isFinished) return;
    this.#isLost = true;
    this.abort();
  }

  /** Never throws. @returns whether the task ended well */
  async run(): Promise<boolean> {
    const { task } = this;
    const { service, clock } = this.#parts;
    const limit = milliseconds(this.#runnable.def.timeout ?? '1m');
    using _limit = clock.every(limit, () => this.abort());
    using _grace = clock.every(limit + GRACE_MS, () => this.leave(new Error('it did not end in its time')));
    const scope = { correlationId: task.correlation_id, service, subject: task.subject, ...(task.lane ? { envId: task.lane } : {}) };
    try {
      const payload = this.#opened();
      const done = inScope(scope, () => this.#runnable.work(payload as never, this.#handed()));
      done.catch(() => undefined);
      await Promise.race([done, this.#left.promise]);
      if (!this.#isFinished && !this.#isLost) await this.#finish();
      return true;
    } catch (error) {
      // Finished in a transaction that did not commit, it is not finished; where that did commit, nothing is left to be marked.
      if (!this.#isLost) await this.#failed(error);
      return false;
    }
  }

  #opened(): unknown {
    const { def, open } = this.#runnable;
    // More tries than it has: its process died each time, and would again.
    if (this.task.attempts > attemptsOf(def)) throw new Error('it was tried too often');
    const payload = open ? open(this.task.payload) : this.task.payload;
    if (payload === undefined)
      throw Object.assign(new Error('what it carries is sealed under a key that is not known'), { code: 'sealed_under_another_key' });
    return payload;
  }

  #handed(): TaskRun {
    const { task } = this;
    const { store, worker } = this.#parts;
    return {
      taskId: task.task_id,
      attempt: task.attempts,
      envId: task.lane || undefined,
      correlationId: task.correlation_id,
      signal: this.#ending.signal,
      finish: async tx => {
        if (!(await store.finish(tx.sql, task, worker, this.#keptFrom()))) throw new Error('another process has taken this task over');
        this.#isFinished = true;
      },
    };
  }

  #keptFrom(): Date | undefined {
    return this.#runnable.def.keep === undefined ? undefined : this.#parts.clock.now();
  }

  async #finish(): Promise<void> {
    const { task } = this;
    const { store, pool, worker, log } = this.#parts;
    // Not written down, it comes again when its lease ends: at least once.
    await store
      .finish(pool.sql, task, worker, this.#keptFrom())
      .catch(error => log.warn({ err: error, task: task.name }, 'a task ended and could not be marked so; it comes again'));
  }

  async #failed(error: unknown): Promise<void> {
    await this.#writeFailure(error).catch(cause =>
      this.#parts.log.warn(
        { err: cause, task: this.task.name },
        'the end of a task could not be written; it comes again when its lease ends',
      ),
    );
  }

  async #writeFailure(error: unknown): Promise<void> {
    const { task } = this;
    const { store, clock, worker, log, isStopping } = this.#parts;
    const now = clock.now();
    if (isStopping() && this.#ending.signal.aborted) return store.giveBack([task.task_id], worker, now);
    const { def } = this.#runnable;
    const { backoff = BACKOFF_S } = def;
    const isFinal = def.attempts !== 'unlimited' && ((isProblem(error) && error.retry === 'never') || task.attempts >= attemptsOf(def));
    const wait = (backoff[Math.min(task.attempts, backoff.length) - 1] ?? 0) * 1_000;
    const isMarked = await store.fail(task, worker, {
      failure: { at: now.toISOString(), reason: failureReason(error) },
      again: isFinal ? undefined : new Date(now.getTime() + wait),
      now,
    });
    if (!isMarked)
      return log.warn(
        { err: error, task: task.name, task_id: task.task_id },
        'a try failed whose task had ended, or is with another process: nothing is tried again for it',
      );
    const fields = { task: task.name, task_id: task.task_id, attempt: task.attempts, err: error };
    if (isFinal) log.error({ ...fields, code: 'task_dead' }, 'a task failed for the last time; it lies with the dead and can be replayed');
    // An outage is told once a task, not at every try.
    else log[task.attempts === 1 ? 'warn' : 'info']({ ...fields, again_s: wait / 1_000 }, 'a task failed and is tried again');
  }
}
