import type { ScheduledRow } from '../../contract/schema/schedule.ts';
import type { EventBusContext } from '../context.ts';
import { Inbox } from '../inbox/inbox.ts';
import { type InboxRow, keyOf } from '../inbox/inbox-group.ts';
import { NO_KEY } from '../produce/minted-key.ts';

const ROWS_PER_MOVE = 500;
const ROWS_PER_SWEEP = 10_000;

/** The row that stands for a key: made now, or by an earlier copy of the request; `published` when an event went out under that key. */
export type Kept = { readonly schedule_id: string; readonly deliver_at: string; readonly replayed: boolean } | 'published';

interface DueRow {
  readonly schedule_id: string;
  readonly env_id: string;
  readonly sub: string;
  readonly idempotency_key: string;
  readonly event_type: string;
  readonly stream_family: string;
  readonly payload: string;
  readonly created_at: string;
  readonly accepted_at: string | Date;
  readonly produced_by: string;
  readonly publisher_id_token: string | null;
  readonly correlation_id: string;
}

/** Delayed events in their table, durable before they are answered. Life: waiting → moved into the inbox, or taken back. */
export class Schedule {
  readonly #ctx: EventBusContext;

  constructor(ctx: EventBusContext) {
    this.#ctx = ctx;
  }

  /** Keeps a row, once per key. */
  async keep(row: InboxRow, deliverAt: Date): Promise<Kept> {
    const { sql } = this.#ctx.db;
    const { id, env, family, envelope } = row;
    const sub = envelope.publisher_subject;
    const key = envelope.idempotency_key === NO_KEY ? id : envelope.idempotency_key;
    if ((await Inbox.minted(sql, [row])).size > 0) return 'published';
    const made = await sql<{ schedule_id: string; deliver_at: string }[]>`
      insert into scheduled_events (schedule_id, env_id, sub, idempotency_key, event_type, stream_family, payload, created_at, accepted_at,
        produced_by, publisher_id_token, correlation_id, deliver_at)
      select ${id}::uuid, ${env}::uuid, ${sub}::text, ${key}::text, ${envelope.event_type}::text, ${family}::text,
        ${envelope.payload}::text, ${envelope.created_at}::text,
        ${envelope.produced_at}::text::timestamptz, ${envelope.produced_by}::text, ${envelope.publisher_id_token ?? null}::text,
          ${envelope.correlation_id}::text, ${deliverAt.toISOString()}::text::timestamptz
      where not exists (select from event_keys
        where key = ${keyOf({ env, envelope: { publisher_subject: sub, idempotency_key: key } })}::text::uuid)
      on conflict on constraint scheduled_events_once do nothing
      returning schedule_id, deliver_at`;
    if (made[0]) return { ...made[0], replayed: false };
    const [first] = await sql<{ schedule_id: string; deliver_at: string }[]>`
      select schedule_id, deliver_at from scheduled_events where env_id = ${env} and sub = ${sub} and idempotency_key = ${key}`;
    return first ? { ...first, replayed: true } : 'published';
  }

  /** Rows that wait, the latest made first; with `dueAt` only those whose time has come by then. */
  async waiting(env: string, { dueAt, below, limit }: { dueAt?: Date; below?: string; limit: number }): Promise<ScheduledRow[]> {
    return this.#ctx.db.sql<ScheduledRow[]>`
      select schedule_id, event_type, stream_family, deliver_at, created_at from scheduled_events
      where env_id = ${env} and delivered_at is null
        and (${dueAt?.toISOString() ?? null}::text is null or deliver_at <= ${dueAt?.toISOString() ?? null}::text::timestamptz)
        and (${below ?? null}::text is null or schedule_id < ${below ?? null}::text::uuid)
      order by schedule_id desc limit ${limit}`;
  }

  /** Deletes a waiting event of the vertical. What stood in the way otherwise: nothing there, delivered already, or not its own. */
  async takeBack(scheduleId: string, vertical: string): Promise<'done' | 'unknown' | 'delivered' | 'foreign'> {
    const { sql } = this.#ctx.db;
    const gone = await sql<object[]>`
      delete from scheduled_events where schedule_id = ${scheduleId} and delivered_at is null
        and split_part(event_type, ':', 1) = ${vertical} returning 1`;
    if (gone.length > 0) return 'done';
    const [row] = await sql<
      { own: boolean }[]
    >`select split_part(event_type, ':', 1) = ${vertical} as own from scheduled_events where schedule_id = ${scheduleId}`;
    return row === undefined ? 'unknown' : row.own ? 'delivered' : 'foreign';
  }

  /**
   * Moves rows whose time has come into the inbox, earliest first, and says how many. One transaction: a crash leaves a row here or there.
   * Under their keys: what was published under one meanwhile is not published again.
   */
  async moveDue(now: Date): Promise<number> {
    const { db, platform } = this.#ctx;
    return db.tx(async ({ sql }) => {
      const due = await sql<DueRow[]>`
        select * from scheduled_events where delivered_at is null and deliver_at <= ${now.toISOString()}::text::timestamptz
        order by deliver_at limit ${ROWS_PER_MOVE} for update skip locked`;
      if (due.length === 0) return 0;
      await Inbox.leave(sql, platform.newId(), due.map(inboxRowOf));
      await sql`update scheduled_events set delivered_at = now()
        where schedule_id = any(${due.map(({ schedule_id }) => schedule_id)}::text[]::uuid[])`;
      return due.length;
    });
  }

  async count(env?: string): Promise<number> {
    const [row] = await this.#ctx.db.sql<{ count: number }[]>`
      select count(*)::int as count from scheduled_events where delivered_at is null
        and (${env ?? null}::text is null or env_id = ${env ?? null}::text::uuid)`;
    return row?.count ?? 0;
  }

  /** Deletes what was delivered as long ago as the inbox forgets keys, at most so many rows per call; answers how many. */
  async sweep(): Promise<number> {
    const gone = await this.#ctx.db.sql<object[]>`
      delete from scheduled_events where schedule_id in (
        select schedule_id from scheduled_events where delivered_at < now() - interval '7 days' order by delivered_at
          limit ${ROWS_PER_SWEEP}) returning 1`;
    return gone.length;
  }
}

const inboxRowOf = (row: DueRow): InboxRow => ({
  id: row.schedule_id,
  env: row.env_id,
  family: row.stream_family,
  envelope: {
    event_type: row.event_type,
    payload: row.payload,
    created_at: row.created_at,
    produced_at: new Date(row.accepted_at).toISOString(),
    produced_by: row.produced_by,
    publisher_subject: row.sub,
    ...(row.publisher_id_token === null ? {} : { publisher_id_token: row.publisher_id_token }),
    correlation_id: row.correlation_id,
    idempotency_key: row.idempotency_key,
  },
});
