import type { LeftTask } from '@platform/sdk';
import type { PostgresPool } from '../storage/postgres/postgres-pool.ts';
import type { Sql } from '../storage/schema/sql.ts';

export interface NewTask {
  readonly task_id: string;
  readonly name: string;
  readonly lane: string;
  readonly key: string | null;
  readonly payload: unknown;
  readonly correlation_id: string;
  readonly subject: string;
  readonly due_at: Date;
  readonly created_at: Date;
}

/** A task in the hands of this process. */
export interface TakenTask {
  readonly task_id: string;
  readonly name: string;
  readonly lane: string;
  readonly payload: unknown;
  readonly correlation_id: string;
  readonly subject: string;
  readonly attempts: number;
}

export interface Failure {
  readonly at: string;
  readonly reason: string;
}

/** Words kept of a task: the first tries and the last say most. */
const MAX_FAILURES = 20;
const SWEEP_ROWS = 1_000;

/** Queues a task in the caller's transaction; the runners hear of it with the commit. One of the same key that waits gives way to it. */
export async function enqueueTask(tx: Sql, task: NewTask): Promise<void> {
  await tx`
    with queued as (
      insert into work_tasks as waiting (task_id, name, lane, key, payload, correlation_id, subject, due_at, created_at)
      values (${task.task_id}, ${task.name}, ${task.lane}, ${task.key}, ${tx.json(task.payload)}, ${task.correlation_id}, ${task.subject},
        ${task.due_at}, ${task.created_at})
      on conflict (name, key) where key is not null and state = 'waiting' do update set
        payload = excluded.payload, correlation_id = excluded.correlation_id, subject = excluded.subject, lane = excluded.lane,
        due_at = least(waiting.due_at, excluded.due_at), attempts = 0
      returning 1)
    select pg_notify(current_schema() || '_work', '') from queued`;
}

/** Takes back a task that waits. @returns whether there was one */
export async function cancelTask(tx: Sql, name: string, key: string): Promise<boolean> {
  const rows = await tx<object[]>`delete from work_tasks where name = ${name} and key = ${key} and state = 'waiting' returning 1`;
  return rows.length > 0;
}

/** The tasks of one service, as its runner and its page see them. */
export class TaskStore {
  readonly #pool: PostgresPool;

  constructor(pool: PostgresPool) {
    this.#pool = pool;
  }

  /**
   * Takes the oldest due tasks of up to `most` lanes, lanes after `after` first and an equal share of each, so that no lane waits for
   * another's backlog. `held` counts what each lane has under way, and none comes to have more than `abreast`. What another process is just
   * taking is passed over.
   */
  async take(asked: {
    names: readonly string[];
    most: number;
    after: string | undefined;
    busy: readonly string[];
    held: Readonly<Record<string, number>>;
    abreast: number;
    worker: string;
    now: Date;
    until: Date;
  }): Promise<TakenTask[]> {
    const { names, most, after, busy, held, abreast, worker, now, until } = asked;
    const { sql } = this.#pool;
    return sql<TakenTask[]>`
      select * from work_take(${names as string[]}::text[], ${most}::int, ${after ?? null}::text, ${busy as string[]}::text[],
        ${sql.json(held)}::jsonb,
        ${abreast}::int, ${worker}, ${now}, ${until})`;
  }

  /** Takes the task that waits under a key, due or not. */
  async takeKey(asked: { name: string; key: string; worker: string; until: Date }): Promise<TakenTask | undefined> {
    const { name, key, worker, until } = asked;
    const [task] = await this.#pool.sql<TakenTask[]>`
      update work_tasks set state = 'running', attempts = attempts + 1, taken_by = ${worker}, leased_until = ${until}
      where name = ${name} and key = ${key} and state = 'waiting'
        returning task_id, name, lane, payload, correlation_id, subject, attempts`;
    return task;
  }

  /** What has not ended well of a name, or of one key of it, oldest first. */
  async left({ name, key, most }: { name: string; key: string | undefined; most: number }): Promise<readonly LeftTask[]> {
    const rows = await this.#pool.sql<(Omit<LeftTask, 'key' | 'failure'> & { key: string | null; failure: string | null })[]>`
      select task_id as "taskId", key, payload, state, attempts, due_at as "dueAt", created_at as "createdAt",
        failures -> -1 ->> 'reason' as failure
      from work_tasks where name = ${name} and (${key ?? null}::text is null or key = ${key ?? null})
        and state in ('waiting', 'running', 'dead')
      order by created_at, task_id limit ${most}`;
    return rows.map(row => ({ ...row, key: row.key ?? undefined, failure: row.failure ?? undefined }));
  }

  /** When the next task falls due that waits for its time; `undefined` when none does. */
  async nextDue(names: readonly string[], now: Date): Promise<Date | undefined> {
    const [row] = await this.#pool.sql<
      { due_at: string }[]
    >`select due_at from work_tasks where state = 'waiting' and due_at > ${now} and name = any(${names as string[]}::text[])
      order by due_at limit 1`;
    return row && new Date(row.due_at);
  }

  /** Renews the lease of what still runs here. @returns ids that are this worker's no more */
  async extend(worker: string, ids: readonly string[], until: Date): Promise<string[]> {
    const kept = await this.#pool.sql<{ task_id: string }[]>`
      update work_tasks set leased_until = ${until} where task_id = any(${ids as string[]}::uuid[]) and taken_by = ${worker}
        and state = 'running' returning task_id`;
    const still = new Set(kept.map(({ task_id }) => task_id));
    return ids.filter(id => !still.has(id));
  }

  /** Puts back what a process that is gone had taken. */
  async reclaim(now: Date): Promise<number> {
    const failure = { at: now.toISOString(), reason: 'its process ended before it did' };
    const rows = await this.#pool.sql<object[]>`
      update work_tasks t set state = case when exists (select 1 from work_tasks newer where newer.name = t.name and newer.key = t.key
        and newer.state = 'waiting') then 'done' else 'waiting' end,
        taken_by = null, leased_until = null, ended_at = ${now}, failures = t.failures || ${this.#pool.sql.json([failure])}::jsonb
      where task_id in (select task_id from work_tasks where state = 'running' and leased_until < ${now} limit 100 for update skip locked)
        returning 1`;
    return rows.length;
  }

  /** Ends a task that this worker has, through `sql`, which may be a transaction. @returns false when it is this worker's no more */
  async finish(sql: Sql, { task_id }: Pick<TakenTask, 'task_id'>, worker: string, kept: Date | undefined): Promise<boolean> {
    const rows = kept
      ? await sql<
          object[]
        >`update work_tasks set state = 'done', ended_at = ${kept}, taken_by = null, leased_until = null where task_id = ${task_id}
          and taken_by = ${worker} and state = 'running' returning 1`
      : await sql<object[]>`delete from work_tasks where task_id = ${task_id} and taken_by = ${worker} and state = 'running' returning 1`;
    return rows.length > 0;
  }

  /**
   * After a failed try: due again at `again`, or dead without it. A newer wish of the same key that waits already takes its place. @returns
   * false when it is this worker's no more
   */
  async fail(
    { task_id }: Pick<TakenTask, 'task_id'>,
    worker: string,
    { failure, again, now }: { failure: Failure; again: Date | undefined; now: Date },
  ): Promise<boolean> {
    const { sql } = this.#pool;
    const rows = await sql<object[]>`
      update work_tasks t set
        state = case when ${again === undefined} then 'dead'
          when exists (select 1 from work_tasks newer where newer.name = t.name and newer.key = t.key
            and newer.state = 'waiting') then 'done' else 'waiting' end,
        due_at = ${again ?? now}, ended_at = ${now}, taken_by = null, leased_until = null,
        failures = case when jsonb_array_length(t.failures) < ${MAX_FAILURES} then t.failures
          else t.failures - ${MAX_FAILURES - 1}::int end || ${sql.json([failure])}::jsonb
      where task_id = ${task_id} and taken_by = ${worker} and state = 'running' returning 1`;
    return rows.length > 0;
  }

  /** Gives a task back that never ran to an end here: the try does not count. */
  async giveBack(ids: readonly string[], worker: string, now: Date): Promise<void> {
    await this.#pool.sql`
      update work_tasks t set state = case when exists (select 1 from work_tasks newer where newer.name = t.name and newer.key = t.key
        and newer.state = 'waiting') then 'done' else 'waiting' end,
        attempts = attempts - 1, due_at = ${now}, ended_at = ${now}, taken_by = null, leased_until = null
      where task_id = any(${ids as string[]}::uuid[]) and taken_by = ${worker} and state = 'running'`;
  }

  /** A dead task is tried anew from the start, with the transaction. @returns its name, where there was one */
  async replay(tx: Sql, taskId: string, now: Date): Promise<string | undefined> {
    const [again] = await tx<{ name: string }[]>`
      with again as (
        update work_tasks set state = 'waiting', attempts = 0, due_at = ${now}, ended_at = null where task_id::text = ${taskId}
          and state = 'dead' returning name)
      select name, pg_notify(current_schema() || '_work', '') from again`;
    return again?.name;
  }

  /** A dead task is given up, with the transaction. @returns its name, where there was one */
  async drop(tx: Sql, taskId: string): Promise<string | undefined> {
    const [gone] = await tx<{ name: string }[]>`
      delete from work_tasks where task_id::text = ${taskId} and state = 'dead' returning name`;
    return gone?.name;
  }

  /** How many of each name and state there are, at most 100,000 of each counted, and since when the oldest due one waits. */
  async figures(
    now: Date,
  ): Promise<{ name: string; waiting: number; due: number; running: number; dead: number; oldest_due_at: string | null }[]> {
    return [
      ...(await this.#pool.sql<
        { name: string; waiting: number; due: number; running: number; dead: number; oldest_due_at: string | null }[]
      >`
        select name, count(*) filter (where state = 'waiting')::int as waiting, count(*) filter (where state = 'waiting'
          and due_at <= ${now})::int as due,
          count(*) filter (where state = 'running')::int as running, count(*) filter (where state = 'dead')::int as dead,
            min(due_at) filter (where state = 'waiting' and due_at <= ${now}) as oldest_due_at
        from (select name, state, due_at from work_tasks where state <> 'done' limit 100000) counted group by name order by name`),
    ];
  }

  /** Dead tasks, the latest first. What they carry is not shown: it may be personal. */
  async dead(limit: number, before: { at: string; id: string } | undefined) {
    return this.#pool.sql<
      {
        task_id: string;
        name: string;
        lane: string;
        attempts: number;
        failures: Failure[];
        created_at: string;
        ended_at: string;
        correlation_id: string;
      }[]
    >`
      select task_id, name, lane, attempts, failures, created_at, ended_at, correlation_id from work_tasks
      where state = 'dead' and (${before?.at ?? null}::timestamptz is null
        or (ended_at, task_id) < (${before?.at ?? null}::timestamptz, ${before?.id ?? null}::uuid))
      order by ended_at desc, task_id desc limit ${limit}`;
  }

  /** Forgets finished or dead tasks of a name that ended before a time. */
  async forget(name: string, state: 'done' | 'dead', before: Date): Promise<void> {
    await this.#pool.sql`delete from work_tasks where task_id in (select task_id from work_tasks where state = ${state} and name = ${name}
        and ended_at < ${before} limit ${SWEEP_ROWS})`;
  }
}
