import { isUnavailable } from '@platform/sdk';
import type { PostgresPool } from '../storage/postgres/postgres-pool.ts';
import { failureReason } from './failure-reason.ts';

export interface JobRecord {
  readonly name: string;
  readonly next_at: string | null;
  readonly started_at: string | null;
  readonly ended_at: string | null;
  readonly outcome: 'ok' | 'failed' | null;
  readonly error: string | null;
  readonly ran_by: string | null;
  readonly failed_at: string | null;
}

/** A job that runs every few seconds is not written down every time. */
const NOTED_EVERY_MS = 60_000;

/** When each job of a service ran last and what came of it, and when a cron job runs next. */
export class JobRecords {
  readonly #pool: PostgresPool;
  readonly #worker: string;
  readonly #noted = new Map<string, { at: number; failed: boolean }>();

  constructor(pool: PostgresPool, worker: string) {
    this.#pool = pool;
    this.#worker = worker;
  }

  /**
   * Moves the time of a cron job on. @returns whether its time had come and this process has it; of several one has, and a missed time
   * counts once
   */
  async takeTurn(name: string, now: Date, next: Date): Promise<boolean> {
    const rows = await this.#pool.sql<{ mine: boolean }[]>`
      with known as (select next_at from work_jobs where name = ${name} for update),
      moved as (
        insert into work_jobs as job (name, next_at) values (${name}, ${next})
        on conflict (name) do update set next_at = excluded.next_at where job.next_at is null or job.next_at <= ${now}
          or job.next_at > excluded.next_at
        returning 1)
      select exists (select 1 from known where next_at <= ${now}) and exists (select 1 from moved) as mine`;
    return rows[0]?.mine ?? false;
  }

  /** Writes down how a run ended. @throws what the database throws; the next run is then written down whatever came of it */
  async ended(
    name: string,
    { startedAt, endedAt, noted, error }: { startedAt: Date; endedAt: Date; noted: boolean; error?: unknown },
  ): Promise<void> {
    const failed = error !== undefined;
    const before = this.#noted.get(name);
    if (!noted && before && before.failed === failed && endedAt.getTime() - before.at < NOTED_EVERY_MS) return;
    if (failed && isUnavailable(error)) return;
    const reason = failed ? failureReason(error) : null;
    await this.#pool.sql`
      insert into work_jobs as job (name, started_at, ended_at, outcome, error, ran_by, failed_at)
      values (${name}, ${startedAt}, ${endedAt}, ${failed ? 'failed' : 'ok'}, ${reason}, ${this.#worker}, ${failed ? endedAt : null})
      on conflict (name) do update set started_at = excluded.started_at, ended_at = excluded.ended_at, outcome = excluded.outcome,
        error = excluded.error, ran_by = excluded.ran_by,
        failed_at = coalesce(excluded.failed_at, job.failed_at)`;
    this.#noted.set(name, { at: endedAt.getTime(), failed });
  }

  async list(): Promise<readonly JobRecord[]> {
    return this.#pool.sql<
      JobRecord[]
    >`select name, next_at, started_at, ended_at, outcome, error, ran_by, failed_at from work_jobs order by name`;
  }
}
