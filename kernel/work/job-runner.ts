import { type JobDef, type Logger, milliseconds } from '@platform/sdk';
import type { Cron } from 'croner';
import type { Clock } from '../base/clock.ts';
import { newId } from '../base/ids.ts';
import type { PostgresPool } from '../storage/postgres/postgres-pool.ts';
import { inScope } from '../telemetry/request-scope.ts';
import { cronOf } from '@platform/checks';
import { JobRecords } from './job-records.ts';

export interface Job extends JobDef {
  readonly name: string;
  readonly work: (signal: AbortSignal) => Promise<void>;
}
export interface JobRunnerOptions {
  readonly service: string;
  readonly jobs: readonly Job[];
  readonly clock: Clock;
  readonly pool: PostgresPool;
  readonly log: Logger;
  readonly worker: string;
}
/** What became of an order to run a job now. */
export type Ordered = 'started' | 'busy' | 'unknown';

const CRON_CHECK_MS = 1_000;

/**
 * Runs a service's declared jobs: per process, or one at a time in the whole fleet under an advisory lock. There is no other timer in a
 * plugin. A cron time is taken by whatever process moves it on first.
 */
export class JobRunner implements AsyncDisposable {
  readonly records: JobRecords;
  readonly #options: JobRunnerOptions;
  readonly #stopping = new AbortController();
  readonly #timers: Disposable[] = [];
  readonly #running = new Map<string, Promise<void>>();
  /** Work that went on after its deadline. Until it ends, its job does not begin again here, nor, for a job of the fleet, anywhere. */
  readonly #overdue = new Map<string, Promise<unknown>>();
  /**
   * Holds the locks of the fleet's jobs. A connection that were taken out of the pool for one could not be asked whether it still stands.
   */
  readonly #session: PostgresPool | undefined;

  constructor(options: JobRunnerOptions) {
    const { jobs, clock, pool, worker } = options;
    this.#options = options;
    this.records = new JobRecords(pool, worker);
    if (jobs.some(({ runs }) => runs === 'fleet')) this.#session = pool.sibling({ max: 1, lasting: true });
    for (const job of jobs)
      if (job.every !== undefined) this.#timers.push(clock.every(milliseconds(job.every), () => this.#begin(job, false)));
    const scheduled = jobs.filter(({ cron }) => cron !== undefined).map(job => ({ job, cron: cronOf(job) }));
    if (scheduled.length > 0) this.#timers.push(clock.every(CRON_CHECK_MS, () => this.#due(scheduled)));
  }

  /** Runs a job at once, in this process, unless it runs here or, for a job of the fleet, anywhere. Does not wait for its end. */
  runNow(name: string): Ordered {
    const job = this.#options.jobs.find(each => each.name === name);
    if (!job) return 'unknown';
    if (this.#busy(name)) return 'busy';
    void this.#begin(job, true);
    return 'started';
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#stopping.abort();
    for (const timer of this.#timers) timer[Symbol.dispose]();
    await Promise.all(this.#running.values());
    await this.#session?.close();
  }

  #busy(name: string): boolean {
    return this.#running.has(name) || this.#overdue.has(name);
  }

  async #due(scheduled: readonly { job: Job; cron: Cron }[]): Promise<void> {
    const { clock, log } = this.#options;
    for (const { job, cron } of scheduled) {
      if (this.#stopping.signal.aborted) return;
      try {
        const now = clock.now();
        const next = cron.nextRun(now);
        if (next && (await this.records.takeTurn(job.name, now, next))) await this.#begin(job, true);
      } catch (error) {
        log.debug({ job: job.name, err: error }, 'the time of a job could not be looked at; the next look tries');
      }
    }
  }

  /** `noted`: the run is written down whatever came of it; a job at a pace is written down when it fails, recovers, or now and then. */
  async #begin(job: Job, noted: boolean): Promise<void> {
    if (this.#stopping.signal.aborted || this.#busy(job.name)) return;
    const { service } = this.#options;
    const run = inScope({ correlationId: `${service}-${newId()}`, service }, () => this.#run(job, noted)).finally(() =>
      this.#running.delete(job.name),
    );
    this.#running.set(job.name, run);
    await run;
  }

  async #run(job: Job, noted: boolean): Promise<void> {
    const { clock, log } = this.#options;
    const startedAt = clock.now();
    let error: unknown;
    try {
      if (job.runs === 'process') await this.#bounded(job);
      else if (!(await this.#locked(job))) return;
    } catch (failure) {
      error = failure;
      log.error({ job: job.name, err: error }, 'job failed');
    }
    try {
      await this.records.ended(job.name, { startedAt, endedAt: clock.now(), noted: noted || error !== undefined, error });
    } catch (failure) {
      log.warn({ job: job.name, err: failure }, 'the end of a job could not be written down');
    }
  }

  /** @returns false when another process has it */
  async #locked(job: Job): Promise<boolean> {
    const { sql } = this.#session as PostgresPool;
    const lock = `platform:job:${this.#options.service}:${job.name}`;
    const [row] = await sql<{ locked: boolean }[]>`select pg_try_advisory_lock(hashtextextended(${lock}, 0)) as locked`;
    if (!row?.locked) return false;
    const unlock = () => sql`select pg_advisory_unlock(hashtextextended(${lock}, 0))`;
    try {
      await this.#bounded(job);
    } finally {
      const overdue = this.#overdue.get(job.name);
      // A job that ignores its signal holds its lock until it ends, or its process does: two of it would work at once.
      if (overdue)
        void overdue
          .then(unlock)
          .catch(error => this.#options.log.warn({ job: job.name, err: error }, 'the lock of an overdue job could not be given back'));
      else await unlock();
    }
    return true;
  }

  async #bounded(job: Job): Promise<void> {
    if (job.timeout === undefined) return job.work(this.#stopping.signal);
    const ending = new AbortController();
    const stop = () => ending.abort();
    this.#stopping.signal.addEventListener('abort', stop, { once: true });
    const late = Promise.withResolvers<never>();
    using _limit = this.#options.clock.every(milliseconds(job.timeout), () => {
      ending.abort();
      late.reject(Object.assign(new Error(`${job.name} did not end in ${job.timeout}`), { code: 'JOB_TIMEOUT' }));
    });
    let ended = false;
    const work = job.work(ending.signal).finally(() => {
      ended = true;
    });
    try {
      await Promise.race([work, late.promise]);
    } finally {
      this.#stopping.signal.removeEventListener('abort', stop);
      if (!ended) this.#wait(job.name, work);
    }
  }

  #wait(name: string, work: Promise<void>): void {
    const settled = work.catch(() => undefined).finally(() => this.#overdue.delete(name));
    this.#overdue.set(name, settled);
  }
}
