import type { Sql } from '@platform/sdk';
import type { Tenants } from '../people/tenants.ts';
import { heldBack, keyOf, type Preferences } from '../people/preferences.ts';
import type { Channel } from '../../contract/schema/send.ts';
import type { MessageWords, Rendered } from '../templates/message-words.ts';
import { type Ctx, nowOf, type PostTx } from '../context.ts';
import { type Content, openContent, sealContent } from './content.ts';
import { ANNOUNCED } from './intake.ts';
import { columns, type MessageRow } from './message-row.ts';

export const BATCH = 50;
/** Passes after which somebody is told; such a row lets others go first, and is never dropped (G-POST-03). */
const ALERT_AFTER = 10;
const HIDDEN_BODY = '';
/** More of a body than this is read in the inbox, not in the event (G-K-22). */
const EVENT_BODY = 32_000;

interface Ready {
  readonly row: MessageRow;
  readonly content: Content;
  readonly rendered: Rendered;
}

/**
 * Puts messages into inboxes: the record of truth, before any other channel is thought of (NTF-003). Wakes on the word of a commit and
 * looks every five seconds beside; a pass takes at most fifty rows, oldest first, that no other process has taken.
 */
export class ViewRelay {
  readonly #ctx: Ctx;
  readonly #words: MessageWords;
  readonly #tenants: Tenants;
  readonly #preferences: Preferences;
  #looking: Promise<void> | undefined;
  #again = false;

  constructor(ctx: Ctx, parts: { words: MessageWords; tenants: Tenants; preferences: Preferences }) {
    this.#ctx = ctx;
    this.#words = parts.words;
    this.#tenants = parts.tenants;
    this.#preferences = parts.preferences;
  }

  async listen(): Promise<AsyncDisposable> {
    return this.#ctx.db.listen(ANNOUNCED, () => void this.look());
  }

  /** Delivers what waits. Asked for again while it does, it looks again. */
  look(signal?: AbortSignal): Promise<void> {
    this.#again = true;
    return (this.#looking ??= this.#drain(signal));
  }

  async #drain(signal: AbortSignal | undefined): Promise<void> {
    await undefined;
    try {
      while (this.#again && !signal?.aborted) {
        this.#again = false;
        while ((await this.pass()) === BATCH && !signal?.aborted);
      }
    } catch (error) {
      this.#ctx.log.warn({ err: error }, 'messages could not be put into inboxes; the next look tries');
    } finally {
      // In the same turn as the last look: who asks in the next one begins anew.
      this.#looking = undefined;
    }
  }

  /** One batch. @returns how many rows it took, delivered or not */
  async pass(): Promise<number> {
    let taken: readonly string[] = [];
    try {
      return await this.#ctx.db.tx(async tx => {
        const rows = await this.#take(tx.sql);
        taken = rows.map(({ notification_id }) => notification_id);
        if (rows.length > 0) await this.#deliver(tx, rows);
        return rows.length;
      });
    } catch (error) {
      if (taken.length === 0) throw error;
      // One row spoils the batch: each goes by itself, and the one that fails is known.
      for (const id of taken) await this.#alone(id);
      return 0;
    }
  }

  #take(sql: Sql, only: string | null = null): Promise<MessageRow[]> {
    return sql<MessageRow[]>`
      select ${columns(sql)} from messages m where m.delivered_at is null and (${only}::uuid is null or m.notification_id = ${only}::uuid)
      order by (m.failed_passes >= ${ALERT_AFTER}), m.created_at, m.notification_id limit ${BATCH} for update skip locked`;
  }

  async #alone(id: string): Promise<void> {
    const { db, log } = this.#ctx;
    try {
      await db.tx(async tx => {
        const rows = await this.#take(tx.sql, id);
        if (rows.length > 0) await this.#deliver(tx, rows);
      });
    } catch (error) {
      const reason = (error as Error).message.slice(0, 300);
      const [row] = await db.sql<{ failed_passes: number }[]>`
        update messages set failed_passes = failed_passes + 1, last_error = ${reason} where notification_id = ${id}
          and delivered_at is null returning failed_passes`;
      if (row?.failed_passes === ALERT_AFTER)
        log.error(
          { notification_id: id, reason, code: 'view_failing' },
          'a message could not be put into its inbox ten times; it is tried on',
        );
      else log.warn({ notification_id: id, reason }, 'a message could not be put into its inbox; the next pass tries');
    }
  }

  async #deliver(tx: PostTx, rows: readonly MessageRow[]): Promise<void> {
    const at = nowOf(this.#ctx);
    const { sql } = tx;
    // A replay takes a row back; its inbox has it, and hears no more of it (G-POST-05).
    await sql`update messages set delivered_at = ${at}, last_error = null where shown_at is not null
      and notification_id = any(${rows.map(({ notification_id }) => notification_id)}::uuid[])`;
    const ready = await Promise.all(rows.filter(({ shown_at }) => shown_at === null).map(row => this.#ready(row)));
    if (ready.length === 0) return;
    const shown = ready.map(({ row, content, rendered }) => ({
      notification_id: row.notification_id,
      content: sealContent(this.#ctx.keys.content, row.notification_id, { ...content, shown: shownOf(row, rendered) }),
    }));
    await sql`update messages m set delivered_at = ${at}, shown_at = ${at}, content = ready.content, last_error = null
      from jsonb_to_recordset(${sql.json(shown)}) as ready(notification_id uuid, content jsonb)
        where m.notification_id = ready.notification_id`;
    await this.#plan(tx, ready, at);
    await this.#announce(tx, ready);
  }

  async #ready(row: MessageRow): Promise<Ready> {
    const content = openContent(this.#ctx.keys.content, row.notification_id, row.content);
    return { row, content, rendered: await this.#words.render(row, content, await this.#tenants.look(row.env_id)) };
  }

  /** The inbox's delivery and one for each channel that leads out: queued, or held back by what its reader wants. */
  async #plan(tx: PostTx, ready: readonly Ready[], at: string): Promise<void> {
    const { sql } = tx;
    const { platform, clock } = this.#ctx;
    const wishes = await this.#preferences.of(
      sql,
      ready.filter(({ row }) => row.channels.length > 0).map(({ row }) => row),
    );
    const made = ready.flatMap(({ row }) => {
      const base = { notification_id: row.notification_id, env_id: row.env_id, created_at: at };
      const view = {
        ...base,
        delivery_id: platform.newId(),
        channel: 'view',
        state: 'delivered',
        attempts: 1,
        delivered_at: at,
        next_attempt_at: null,
        why: 'the inbox always gets it',
      };
      const held = heldBack(wishes.get(keyOf(row)), row.category, clock.now());
      const out = row.channels.map(channel => ({
        ...base,
        delivery_id: platform.newId(),
        channel,
        state: held ? 'suppressed' : 'pending',
        attempts: 0,
        delivered_at: null,
        next_attempt_at: held ? null : at,
        why: held ?? 'on its way',
      }));
      return [view, ...out];
    });
    const fresh = await sql<{ delivery_id: string; env_id: string; channel: string; state: string }[]>`
      insert into deliveries (delivery_id, notification_id, env_id, channel, state, attempts, next_attempt_at, why, created_at,
        delivered_at)
      select delivery_id, notification_id, env_id, channel, state, attempts, next_attempt_at, why, created_at, delivered_at
        from jsonb_to_recordset(${sql.json(made)})
        as d(delivery_id uuid, notification_id uuid, env_id uuid, channel text, state text, attempts int, next_attempt_at timestamptz,
          why text, created_at timestamptz, delivered_at timestamptz)
      on conflict (notification_id, channel) do nothing returning delivery_id, env_id, channel, state`;
    for (const { delivery_id, env_id, channel, state } of fresh)
      if (state === 'pending') await tx.enqueue(channel as Channel, { delivery_id }, { key: delivery_id, envId: env_id });
  }

  /** One event a message, with the count that its reader then sees. */
  async #announce(tx: PostTx, ready: readonly Ready[]): Promise<void> {
    const { sql } = tx;
    const counts = new Map(
      (
        await sql<{ env_id: string; user_id: string; unread: number }[]>`
        select env_id, user_id, count(*)::int as unread from messages where read_at is null and shown_at is not null
          and (env_id, user_id) in (select (asked->>'env_id')::uuid, asked->>'user_id'
            from jsonb_array_elements(${sql.json(ready.map(({ row: { env_id, user_id } }) => ({ env_id, user_id })))}::jsonb) as asked)
        group by env_id, user_id`
      ).map(row => [keyOf(row), row.unread]),
    );
    // The newest of a batch shows the whole count, those before it one less each.
    const entries = [...ready].reverse().map(({ row, rendered }) => {
      const unread = counts.get(keyOf(row)) ?? 1;
      counts.set(keyOf(row), Math.max(1, unread - 1));
      return {
        envId: row.env_id,
        correlationId: row.correlation_id,
        payload: {
          user_id: row.user_id,
          notification_id: row.notification_id,
          title: rendered.subject,
          body: row.confidential ? HIDDEN_BODY : rendered.body.slice(0, EVENT_BODY),
          category: row.category,
          resource_refs: row.resource_refs,
          unread_count: unread,
        },
      };
    });
    await tx.emitAll('platform:notification:received', entries.reverse());
  }
}

/** What the inbox shows: of a confidential message, that it was sent, not what it says. */
function shownOf(row: MessageRow, { why: _, ...rendered }: Rendered): Omit<Rendered, 'why'> {
  return row.confidential ? { ...rendered, body: HIDDEN_BODY, content_type: 'text/plain' } : rendered;
}
