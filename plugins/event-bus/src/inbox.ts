import type { Envelope } from './entry.ts';
import type { EventBusContext } from './context.ts';
import type { StreamRef } from './names.ts';

/** An event on its way into the inbox. */
export interface InboxRow extends StreamRef {
  readonly id: string;
  readonly sub: string;
  readonly envelope: Envelope;
}
/** A row that is ours to append: nobody else does while `attempt` is the newest. */
export interface Leased extends InboxRow {
  readonly attempt: number;
}
export interface Mark {
  readonly id: string;
  readonly attempt: number;
  readonly message_id: string;
  readonly key: string;
}
export interface JournalEntry {
  readonly at: string;
  readonly action: 'produce' | 'ack' | 'replay';
  readonly sub: string;
  readonly env_id: string;
  readonly stream_family: string;
  readonly event_type: string | null;
  readonly message_id: string | null;
  readonly outcome: string;
  readonly correlation_id: string;
}
export interface Known extends StreamRef {
  readonly key: string;
  readonly event_type: string;
  readonly message_id: string | null;
}

interface StoredRow {
  readonly id: string;
  readonly attempt: number;
  readonly env_id: string;
  readonly sub: string;
  readonly idempotency_key: string;
  readonly event_type: string;
  readonly stream_family: string;
  readonly payload: string;
  readonly created_at: string;
  readonly produced_at: string;
  readonly produced_by: string;
  readonly publisher_id_token: string | null;
  readonly correlation_id: string;
}

export const keyOf = (env: string, sub: string, idempotencyKey: string): string => `${env}\n${sub}\n${idempotencyKey}`;
export const rowKey = ({ env, sub, envelope }: InboxRow): string => keyOf(env, sub, envelope.idempotency_key);

/** The durable side of produce: one statement per group of rows. Tables: `event_inbox`, `audit_journal`. */
export class Inbox {
  readonly #ctx: EventBusContext;

  constructor(ctx: EventBusContext) {
    this.#ctx = ctx;
  }

  /**
   * Commits rows, and with them the marks and journal of what was appended before. Answers the rows that are now ours to append:
   * the new ones, and earlier copies that are on no stream. A copy is taken over when its appender has had a second, and at once when it
   * came in a batch: what follows it there would come before it. What its first appender still makes of it is one more duplicate.
   * What is missing in the answer is on its stream, or about to be.
   */
  async commit(rows: readonly (InboxRow & { readonly inBatch?: boolean })[], marks: readonly Mark[], journal: readonly JournalEntry[]): Promise<Map<string, { id: string; attempt: number }>> {
    const { sql } = this.#ctx.db;
    const of = <T>(pick: (row: InboxRow) => T): T[] => rows.map(pick);
    const leased = await sql<{ id: string; attempt: number; env_id: string; sub: string; idempotency_key: string }[]>`
      with marked as (
        update event_inbox i set message_id = m.message_id, relayed_at = now()
        from unnest(${marks.map(({ id }) => id)}::text[], ${marks.map(({ attempt }) => attempt)}::int[], ${marks.map(({ message_id }) => message_id)}::text[]) m(id, attempt, message_id)
        where i.id = m.id::uuid and i.attempt = m.attempt
      ), journaled as (
        insert into audit_journal (at, action, sub, env_id, stream_family, event_type, message_id, outcome, correlation_id)
        select at::timestamptz, action, sub, env_id::uuid, stream_family, event_type, message_id, outcome, correlation_id
        from unnest(${journal.map(({ at }) => at)}::text[], ${journal.map(({ action }) => action)}::text[], ${journal.map(({ sub }) => sub)}::text[], ${journal.map(({ env_id }) => env_id)}::text[],
          ${journal.map(({ stream_family }) => stream_family)}::text[], ${journal.map(({ event_type }) => event_type)}::text[], ${journal.map(({ message_id }) => message_id)}::text[],
          ${journal.map(({ outcome }) => outcome)}::text[], ${journal.map(({ correlation_id }) => correlation_id)}::text[])
          j(at, action, sub, env_id, stream_family, event_type, message_id, outcome, correlation_id)
      )
      insert into event_inbox (id, env_id, sub, idempotency_key, event_type, stream_family, payload, created_at, produced_at, produced_by, publisher_id_token, correlation_id, attempt, append_by)
      select id::uuid, env_id::uuid, sub, idempotency_key, event_type, stream_family, payload, created_at, produced_at::timestamptz, produced_by, publisher_id_token, correlation_id, attempt, now() + interval '10 s'
      from unnest(${of(({ id }) => id)}::text[], ${of(({ env }) => env)}::text[], ${of(({ sub }) => sub)}::text[], ${of(({ envelope }) => envelope.idempotency_key)}::text[],
        ${of(({ envelope }) => envelope.event_type)}::text[], ${of(({ family }) => family)}::text[], ${of(({ envelope }) => envelope.payload)}::text[], ${of(({ envelope }) => envelope.created_at)}::text[],
        ${of(({ envelope }) => envelope.produced_at)}::text[], ${of(({ envelope }) => envelope.produced_by)}::text[], ${of(({ envelope }) => envelope.publisher_id_token ?? null)}::text[],
        ${of(({ envelope }) => envelope.correlation_id)}::text[], ${rows.map(({ inBatch }) => (inBatch ? 2 : 1))}::int[])
        u(id, env_id, sub, idempotency_key, event_type, stream_family, payload, created_at, produced_at, produced_by, publisher_id_token, correlation_id, attempt)
      -- One order for everybody: two processes with the same keys wait for each other instead of deadlocking.
      order by env_id, sub, idempotency_key
      on conflict on constraint event_inbox_once do update set attempt = event_inbox.attempt + 1, append_by = excluded.append_by
        where event_inbox.message_id is null and (event_inbox.append_by < now() + interval '9 s' or excluded.attempt > 1)
      returning id, attempt, env_id, sub, idempotency_key`;
    return new Map(leased.map(({ id, attempt, env_id, sub, idempotency_key }) => [keyOf(env_id, sub, idempotency_key), { id, attempt }]));
  }

  /** Rows that were accepted before, by the keys of these. */
  async find(rows: readonly InboxRow[]): Promise<Map<string, Known>> {
    const found = await this.#ctx.db.sql<{ env_id: string; sub: string; idempotency_key: string; stream_family: string; event_type: string; message_id: string | null }[]>`
      select i.env_id, i.sub, i.idempotency_key, i.stream_family, i.event_type, i.message_id
      from event_inbox i join unnest(${rows.map(({ env }) => env)}::text[], ${rows.map(({ sub }) => sub)}::text[], ${rows.map(({ envelope }) => envelope.idempotency_key)}::text[]) k(env_id, sub, idempotency_key)
        on i.env_id = k.env_id::uuid and i.sub = k.sub and i.idempotency_key = k.idempotency_key`;
    return new Map(
      found.map(({ env_id, sub, idempotency_key, stream_family, event_type, message_id }) => {
        const key = keyOf(env_id, sub, idempotency_key);
        return [key, { key, env: env_id, family: stream_family, event_type, message_id }];
      }),
    );
  }

  /** Whether there are rows whose appender gave up. */
  async isDue(): Promise<boolean> {
    const [row] = await this.#ctx.db.sql<{ due: boolean }[]>`select exists (select from event_inbox where message_id is null and append_by <= now()) as due`;
    return row?.due === true;
  }

  /** Takes up to `limit` rows whose appender gave up, oldest first. */
  async lease(limit: number): Promise<Leased[]> {
    const rows = await this.#ctx.db.sql<StoredRow[]>`
      update event_inbox set attempt = attempt + 1, append_by = now() + interval '10 s'
      where id in (select id from event_inbox where message_id is null and append_by <= now() order by id limit ${limit} for update skip locked)
      returning id, attempt, env_id, sub, idempotency_key, event_type, stream_family, payload, created_at, produced_at, produced_by, publisher_id_token, correlation_id`;
    return rows.map(leasedOf).sort((left, right) => (left.id < right.id ? -1 : 1));
  }

  /** The stored content of rows whose lease we hold. */
  async load(ids: readonly string[]): Promise<Map<string, Leased>> {
    const rows = await this.#ctx.db.sql<StoredRow[]>`
      select id, attempt, env_id, sub, idempotency_key, event_type, stream_family, payload, created_at, produced_at, produced_by, publisher_id_token, correlation_id
      from event_inbox where id = any(${ids}::text[]::uuid[])`;
    return new Map(rows.map(row => [row.id, leasedOf(row)]));
  }

  /** Gives up leases after a failed append: anybody may take the rows in `afterMs`. With `tell`, relays are woken, once for all rows. */
  async release(rows: readonly { id: string; attempt: number }[], { afterMs = 0, tell = false }: { afterMs?: number; tell?: boolean } = {}): Promise<void> {
    await this.#ctx.db.sql`
      with released as (
        update event_inbox i set append_by = now() + ${afterMs}::int * interval '1 ms'
        from unnest(${rows.map(({ id }) => id)}::text[], ${rows.map(({ attempt }) => attempt)}::int[]) r(id, attempt)
        where i.id = r.id::uuid and i.attempt = r.attempt and i.message_id is null
        returning 1
      )
      select case when ${tell} and exists (select from released) then pg_notify('bus_inbox', '') end`;
  }

  /** Makes rows of [`from`, `until`) due again: the store that had taken them has come back without them. How many; 0 when none is left. */
  async reopen(from: string | undefined, until: string): Promise<number> {
    const reopened = await this.#ctx.db.sql<{ id: string }[]>`
      update event_inbox set message_id = null, relayed_at = null, attempt = attempt + 1, append_by = now()
      where id in (select id from event_inbox where relayed_at >= coalesce(${from ?? null}::timestamptz, '-infinity') and relayed_at < ${until}::timestamptz order by relayed_at limit 5000)
      returning id`;
    return reopened.length;
  }

  /** What was under way when the store went may have reached the old one and not the new: its marks must not count. */
  async fenceUnmarked(): Promise<void> {
    await this.#ctx.db.sql`update event_inbox set attempt = attempt + 1, append_by = now() where message_id is null`;
  }

  async now(): Promise<string> {
    const [row] = await this.#ctx.db.sql<{ now: string }[]>`select to_char(now() at time zone 'utc', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"') as now`;
    return (row as { now: string }).now;
  }

  async unrelayed(): Promise<number> {
    const [row] = await this.#ctx.db.sql<{ count: number }[]>`select count(*)::int as count from event_inbox where message_id is null`;
    return row?.count ?? 0;
  }

  /** Deletes what retention no longer keeps, at most so many rows per call; answers how many. */
  async sweep(): Promise<number> {
    const { sql } = this.#ctx.db;
    const events = await sql`delete from event_inbox where id in (select id from event_inbox where relayed_at < now() - interval '7 days' order by relayed_at limit 10000) returning 1`;
    const journal = await sql`delete from audit_journal where id in (select id from audit_journal where at < now() - interval '90 days' order by at limit 10000) returning 1`;
    return events.length + journal.length;
  }
}

function leasedOf(row: StoredRow): Leased {
  return {
    id: row.id,
    attempt: row.attempt,
    env: row.env_id,
    family: row.stream_family,
    sub: row.sub,
    envelope: {
      event_type: row.event_type,
      payload: row.payload,
      created_at: row.created_at,
      produced_at: row.produced_at,
      produced_by: row.produced_by,
      publisher_subject: row.sub,
      ...(row.publisher_id_token === null ? {} : { publisher_id_token: row.publisher_id_token }),
      correlation_id: row.correlation_id,
      idempotency_key: row.idempotency_key,
      inbox_id: row.id,
    },
  };
}
