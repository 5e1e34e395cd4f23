import type { Logger } from '@platform/sdk';
import { type Clock, milliseconds } from '../base/clock.ts';
import { newId } from '../base/ids.ts';
import type { PostgresPool } from '../storage/postgres-pool.ts';
import { inScope } from '../telemetry/request-scope.ts';

export interface Job {
  readonly name: string;
  readonly every: string;
  readonly runs: 'fleet' | 'process';
  readonly work: (signal: AbortSignal) => Promise<void>;
}

/** Runs a service's declared jobs: per process, or one at a time in the whole fleet under an advisory lock. There is no other timer in a plugin. */
export class JobRunner implements AsyncDisposable {
  readonly #stopping = new AbortController();
  readonly #timers: Disposable[] = [];
  readonly #running = new Set<Promise<void>>();
  /** Holds the locks of the fleet's jobs. A connection that were taken out of the pool for one could not be asked whether it still stands. */
  readonly #session: PostgresPool | undefined;

  constructor(options: { service: string; jobs: readonly Job[]; clock: Clock; pool: PostgresPool; log: Logger }) {
    const { service, clock, log } = options;
    if (options.jobs.some(({ runs }) => runs === 'fleet')) this.#session = options.pool.sibling({ max: 1, lasting: true });
    for (const job of options.jobs) {
      this.#timers.push(
        clock.every(milliseconds(job.every), async () => {
          const run = inScope({ correlationId: `${service}-${newId()}`, service }, () => this.#run(service, job)).catch(error => log.error({ job: job.name, err: error }, 'job failed'));
          this.#running.add(run);
          await run.finally(() => this.#running.delete(run));
        }),
      );
    }
  }

  async #run(service: string, job: Job): Promise<void> {
    if (this.#stopping.signal.aborted) return;
    if (job.runs === 'process') return job.work(this.#stopping.signal);
    const { sql } = this.#session as PostgresPool;
    const lock = `platform:job:${service}:${job.name}`;
    const [row] = await sql<{ locked: boolean }[]>`select pg_try_advisory_lock(hashtextextended(${lock}, 0)) as locked`;
    if (!row?.locked) return;
    try {
      await job.work(this.#stopping.signal);
    } finally {
      await sql`select pg_advisory_unlock(hashtextextended(${lock}, 0))`;
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#stopping.abort();
    for (const timer of this.#timers) timer[Symbol.dispose]();
    await Promise.all(this.#running);
    await this.#session?.close();
  }
}
