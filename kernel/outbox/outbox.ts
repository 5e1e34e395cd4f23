import type { Sql } from '../storage/schema/sql.ts';

/** An event as the producing service writes it, in the transaction that makes it true. */
export interface OutboxEvent {
  /** UUIDv7 from `newId()`; it is the event's idempotency key on the bus, and orders events of one transaction. */
  readonly id: string;
  readonly env_id: string;
  readonly event_type: string;
  readonly stream_family: string;
  readonly payload: object;
  readonly correlation_id: string;
  readonly publisher_subject: string;
  readonly publisher_id_token?: string | null;
  /** Committed, but unseen by the relay until {@link release}. */
  readonly hold?: string;
}

/** More environments than these are called for without a name. */
const NAMED = 8;
/** The call of a transaction that names no environment. */
export const ANY = '';

/** Writes one event. */
export async function insertEvent(tx: Sql, event: OutboxEvent): Promise<void> {
  await insertEvents(tx, [event]);
}

/** Writes many events in one statement and wakes the relay when the transaction commits, with the names of their environments. */
export async function insertEvents(tx: Sql, events: readonly OutboxEvent[]): Promise<void> {
  if (events.length === 0) return;
  await tx`
    with written as (${insertion(tx, events)} returning 1)
    select pg_notify(current_schema() || '_outbox', call) from unnest(${callsOf(events)}::text[]) as call`;
}

/** The same as a definition of a statement's `with`, written where `where` holds. */
export function announced(sql: Sql, events: readonly OutboxEvent[], where: unknown): unknown {
  const [one] = callsOf(events);
  return sql`
    announced as (${insertion(sql, events)} where ${where}
      returning case when hold is null then pg_notify(current_schema() || '_outbox', case when ${one === ANY} then ${ANY}
        else env_id::text end)::text end)`;
}

/** Who is called for: their names, or nobody's where they are many. */
function callsOf(events: readonly OutboxEvent[]): readonly string[] {
  const named = new Set(events.flatMap(({ env_id, hold }) => (hold == null ? [env_id] : [])));
  return named.size > NAMED ? [ANY] : [...named];
}

const insertion = (sql: Sql, events: readonly OutboxEvent[]): unknown => sql`
  insert into outbox (id, env_id, event_type, stream_family, payload, correlation_id, publisher_subject, publisher_id_token, hold)
  select id, env_id, event_type, stream_family, payload, correlation_id, publisher_subject, publisher_id_token, hold
  from jsonb_to_recordset(${sql.json(events)}) as event(
    id uuid, env_id uuid, event_type text, stream_family text, payload jsonb, correlation_id text,
    publisher_subject text, publisher_id_token text, hold text)`;

/** Lets the relay see what was held back as `hold`; the number of events. */
export async function release(tx: Sql, hold: string): Promise<number> {
  const rows = await tx<{ notified: unknown }[]>`
    with released as (update outbox set hold = null where hold = ${hold} and not relayed returning 1)
    select pg_notify(current_schema() || '_outbox', '') as notified from released`;
  return rows.length;
}

/** Forgets what was held back as `hold`; the number of events. */
export async function drop(tx: Sql, hold: string): Promise<number> {
  const rows = await tx<{ id: string }[]>`delete from outbox where hold = ${hold} and not relayed returning id`;
  return rows.length;
}
