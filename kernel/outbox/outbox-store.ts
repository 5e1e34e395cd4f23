import type postgres from 'postgres';
import type { PostgresPool } from '../storage/postgres/postgres-pool.ts';
import type { OutboxRow, Outcome } from './relay/delivery.ts';

/** How the outbox of one service stands. `pending` counts up to 100,000. */
export interface OutboxState {
  readonly pending: number;
  readonly parked: number;
  readonly oldest_age_s: number;
}

/** The first waiting row of an environment: nothing of that environment moves before it does. */
export interface Head {
  readonly env_id: string;
  readonly next_retry_at: string | null;
}

const RELAYED_DAYS = 7;
const INBOX_DAYS = 30;
const SWEEP_ROWS = 1_000;
const SWEEP_TURNS = 100;

export async function stepDown(pool: PostgresPool): Promise<void> {
  await pool.raw`select pg_advisory_unlock_all()`;
}

/**
 * Takes or keeps the right to relay a service, for the session of `pool`, and looks at the heads of the environments behind `after`;
 * nothing when another process has it. By a loose scan of the partial index: its cost is the number of environments it answers, not of
 * rows.
 */
export async function heads(pool: PostgresPool, service: string, after: string, limit: number): Promise<Head[] | undefined> {
  const rows = await pool.raw<({ held: boolean } & { [K in keyof Head]: Head[K] | null })[]>`
    with recursive led as materialized (${lead(pool, service)}),
    envs as (
      (select env_id, 1 as n from outbox where (select held from led) and not relayed and hold is null and not parked and env_id > ${after}
        order by env_id limit 1)
      union all
      select (select env_id from outbox o where not relayed and hold is null and not parked and o.env_id > envs.env_id order by env_id
        limit 1), n + 1
      from envs where env_id is not null and n < ${limit})
    select led.held, waiting.* from led left join (
      select envs.env_id, head.next_retry_at
      from envs cross join lateral (
        select next_retry_at from outbox o
        where not relayed and hold is null and not parked and o.env_id = envs.env_id order by created_at, id limit 1) head
      where envs.env_id is not null) waiting on true
    order by waiting.env_id`;
  if (rows[0]?.held !== true) return undefined;
  return rows.flatMap(({ env_id, next_retry_at }) => (env_id === null ? [] : [{ env_id, next_retry_at }]));
}

/** The rows to send next of each environment, in order, up to the first that still has to wait; nothing when another process relays. */
export async function dueRows(
  pool: PostgresPool,
  service: string,
  { envIds, now, limit }: { envIds: readonly string[]; now: Date; limit: number },
): Promise<OutboxRow[] | undefined> {
  const rows = await pool.raw<({ held: boolean; next_retry_at: string | null } & (OutboxRow | { id: null }))[]>`
    with led as materialized (${lead(pool, service)})
    select led.held, due.* from led left join (
      select row.* from unnest(${envIds as string[]}::uuid[]) env cross join lateral (
        select id, id as idempotency_key, env_id, event_type, stream_family, payload, correlation_id, publisher_subject, publisher_id_token,
               created_at, attempts, refusals, next_retry_at
        from outbox where (select held from led) and not relayed and hold is null and not parked and env_id = env
        order by created_at, id limit ${limit}) row) due on true
    order by due.env_id, due.created_at, due.id`;
  if (rows[0]?.held !== true) return undefined;
  const waiting = new Set<string>();
  return rows.flatMap(({ held: _, next_retry_at, ...row }) => {
    if (row.id === null) return [];
    if (next_retry_at !== null && Date.parse(next_retry_at) > now.getTime()) waiting.add(row.env_id);
    return waiting.has(row.env_id) ? [] : [row];
  });
}

/** The session that has the lock gets it again, so that one that was cut off and came back asks like everybody else. */
const lead = ({ raw }: PostgresPool, service: string) =>
  raw`select pg_try_advisory_lock(hashtextextended(${`platform:relay:${service}`}, 0)) as held`;

/**
 * Writes what became of the rows. They are named twice: by the list alone the planner sees that they are few, whatever it knows of the
 * table. What another leader carried meanwhile stays carried.
 */
export async function record(pool: PostgresPool, outcomes: readonly Outcome[], now: Date): Promise<void> {
  const { raw } = pool;
  await raw`
    update outbox set
      relayed = outcome.relayed, parked = outcome.parked, next_retry_at = outcome.next_retry_at, last_error = outcome.last_error,
      relayed_at = case when outcome.relayed then ${now}::timestamptz end,
      attempts = attempts + 1, refusals = refusals + outcome.refused::int
    from jsonb_to_recordset(${raw.json(outcomes as unknown as postgres.JSONValue)}) as outcome(
      id uuid, relayed boolean, parked boolean, refused boolean, next_retry_at timestamptz, last_error text)
    where outbox.id = outcome.id and outbox.id = any(${outcomes.map(({ id }) => id)}::uuid[]) and not outbox.relayed`;
}

export async function stateOf(pool: PostgresPool, now: Date): Promise<OutboxState> {
  const [row] = await pool.raw<{ pending: number; parked: number; oldest: string | null }[]>`
    select
      (select count(*) from (select 1 from outbox where not relayed and hold is null and not parked limit 100000) p) as pending,
      (select count(*) from outbox where parked) as parked,
      (select min(created_at) from outbox where not relayed and hold is null and not parked) as oldest`;
  const age = row?.oldest == null ? 0 : (now.getTime() - Date.parse(row.oldest)) / 1_000;
  return { pending: row?.pending ?? 0, parked: row?.parked ?? 0, oldest_age_s: Math.max(0, age) };
}

/**
 * Forgets relayed rows after seven days, inbox marks after thirty and answers under an Idempotency-Key after one, in small steps. Parked
 * rows stay.
 */
export async function sweep(pool: PostgresPool, now: Date): Promise<number> {
  const before = (days: number): Date => new Date(now.getTime() - days * 86_400_000);
  let total = 0;
  for (let turn = 0; turn < SWEEP_TURNS; turn++) {
    const relayed = await pool.raw`
      delete from outbox where id in (select id from outbox where relayed and relayed_at < ${before(RELAYED_DAYS)} limit ${SWEEP_ROWS}
        for update skip locked)`;
    const marks = await pool.raw`
      delete from inbox where (consumer, idempotency_key) in
        (select consumer, idempotency_key from inbox where at < ${before(INBOX_DAYS)} limit ${SWEEP_ROWS} for update skip locked)`;
    const answers = await pool.raw`
      delete from idempotent_answers where (caller, key) in
        (select caller, key from idempotent_answers where started_at < ${before(1)} limit ${SWEEP_ROWS} for update skip locked)`;
    total += relayed.count + marks.count + answers.count;
    if ([relayed, marks, answers].every(({ count }) => count < SWEEP_ROWS)) break;
  }
  return total;
}
