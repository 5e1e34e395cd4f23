import type { ScheduledRow } from '../../contract/schema/schedule.ts';
import type { EventBusContext } from '../context.ts';
import type { InboxRow } from '../inbox.ts';

const ROWS_PER_MOVE = 500;
const ROWS_PER_SWEEP = 10_000;

/** The row that stands for a key: made now, or by an earlier copy of the request; `published` when an event went out under that key. */
export type Kept = { readonly schedule_id: string; readonly deliver_at: string; readonly replayed: boolean } | 'published';

/** Delayed events in their table, durable before they are answered. Life: waiting → moved into the inbox, or taken back. */
export class Schedule {
  readonly #ctx: EventBusContext;

  constructor(ctx: EventBusContext) {
    this.#ctx = ctx;
  }

  /** Keeps a row, once per key. */
  async keep({ id, env, family, sub, envelope }: InboxRow, deliverAt: Date): Promise<Kept> {
    const { sql } = this.#ctx.db;
    const key = envelope.idempotency_key;
    const made = await sql<{ schedule_id: string; deliver_at: string }[]>`
      insert into scheduled_events (schedule_id, env_id, sub, idempotency_key, event_type, stream_family, payload, created_at, accepted_at, produced_by, publisher_id_token, correlation_id, deliver_at)
      select ${id}::uuid, ${env}::uuid, ${sub}::text, ${key}::text, ${envelope.event_type}::text, ${family}::text, ${envelope.payload}::text, ${envelope.created_at}::text,
        ${envelope.produced_at}::text::timestamptz, ${envelope.produced_by}::text, ${envelope.publisher_id_token ?? null}::text, ${envelope.correlation_id}::text, ${deliverAt.toISOString()}::text::timestamptz
      where not exists (select from event_inbox i where i.env_id = ${env}::uuid and i.sub = ${sub} and i.idempotency_key = ${key})
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
      delete from scheduled_events where schedule_id = ${scheduleId} and delivered_at is null and split_part(event_type, ':', 1) = ${vertical} returning 1`;
    if (gone.length > 0) return 'done';
    const [row] = await sql<{ own: boolean }[]>`select split_part(event_type, ':', 1) = ${vertical} as own from scheduled_events where schedule_id = ${scheduleId}`;
    return row === undefined ? 'unknown' : row.own ? 'delivered' : 'foreign';
  }

  /**
   * Moves rows whose time has come into the inbox, earliest first, and says how many. One statement: a crash leaves a row here or there.
   * Under their keys: what was published under one meanwhile is not published again.
   */
  async moveDue(now: Date): Promise<number> {
    const moved = await this.#ctx.db.sql<object[]>`
      with due as (
        select * from scheduled_events where delivered_at is null and deliver_at <= ${now.toISOString()}::text::timestamptz
        order by deliver_at limit ${ROWS_PER_MOVE} for update skip locked
      ), taken as (
        insert into event_inbox (id, env_id, sub, idempotency_key, event_type, stream_family, payload, created_at, produced_at, produced_by, publisher_id_token, correlation_id, append_by)
        select schedule_id, env_id, sub, idempotency_key, event_type, stream_family, payload, created_at, accepted_at, produced_by, publisher_id_token, correlation_id, now() from due
        order by env_id, sub, idempotency_key
        on conflict on constraint event_inbox_once do nothing
      )
      update scheduled_events s set delivered_at = now() from due where s.schedule_id = due.schedule_id returning 1`;
    return moved.length;
  }

  async count(env?: string): Promise<number> {
    const [row] = await this.#ctx.db.sql<{ count: number }[]>`
      select count(*)::int as count from scheduled_events where delivered_at is null and (${env ?? null}::text is null or env_id = ${env ?? null}::text::uuid)`;
    return row?.count ?? 0;
  }

  /** Deletes what was delivered as long ago as the inbox forgets keys, at most so many rows per call; answers how many. */
  async sweep(): Promise<number> {
    const gone = await this.#ctx.db.sql<object[]>`
      delete from scheduled_events where schedule_id in (
        select schedule_id from scheduled_events where delivered_at < now() - interval '7 days' order by delivered_at limit ${ROWS_PER_SWEEP}) returning 1`;
    return gone.length;
  }
}
