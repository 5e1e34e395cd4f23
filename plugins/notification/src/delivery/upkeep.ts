import type { Channel } from '../../contract/schema/send.ts';
import type { Ctx } from '../context.ts';
import { contentPurpose } from '../messages/content.ts';
import { mailPurpose } from './mailbox.ts';

const DAY_MS = 86_400_000;
const ROWS = 5_000;
const LOST_MS = 600_000;
const AT_ONCE = 200;
const KEPT_MAILS = 1_000;

/** Retention, and deliveries whose task was lost. */
export class Upkeep {
  readonly #ctx: Ctx;

  constructor(ctx: Ctx) {
    this.#ctx = ctx;
  }

  /** Queues anew what has been due for ten minutes: where its task still waits, nothing changes (a task of the same key gives way). */
  async resume(signal: AbortSignal): Promise<void> {
    const before = new Date(this.#ctx.clock.now().getTime() - LOST_MS).toISOString();
    const rows = await this.#ctx.db.sql<{ delivery_id: string; env_id: string; channel: Channel }[]>`
      select delivery_id, env_id, channel from deliveries where state = 'pending' and next_attempt_at < ${before} order by next_attempt_at
        limit ${AT_ONCE}`;
    if (rows.length === 0 || signal.aborted) return;
    await this.#ctx.db.tx(async tx => {
      for (const { delivery_id, env_id, channel } of rows) await tx.enqueue(channel, { delivery_id }, { key: delivery_id, envId: env_id });
    });
  }

  /** Messages 180 days, deliveries and dead letters 90 (G-POST-08); kept mails as many as somebody may want to read. */
  async forget(signal: AbortSignal): Promise<void> {
    const { sql } = this.#ctx.db;
    const before = (days: number) => new Date(this.#ctx.clock.now().getTime() - days * DAY_MS).toISOString();
    const rounds: (() => Promise<readonly object[]>)[] = [
      () =>
        sql<object[]>`delete from messages where notification_id in (select notification_id from messages where created_at < ${before(180)}
          limit ${ROWS}) returning 1`,
      () =>
        sql<object[]>`delete from deliveries where delivery_id in (select delivery_id from deliveries where created_at < ${before(90)}
          and state <> 'pending' limit ${ROWS}) returning 1`,
      () =>
        sql<
          object[]
        >`delete from mailbox where mail_id in (select mail_id from mailbox order by created_at desc, mail_id desc offset ${KEPT_MAILS}
          limit ${ROWS}) returning 1`,
    ];
    for (const round of rounds) while (!signal.aborted && (await round()).length === ROWS);
  }

  /** When the key changes, so that the one before may be dropped. */
  sealAnew(signal: AbortSignal): Promise<void> {
    const places = [
      { table: 'messages', id: 'notification_id', column: 'content', purpose: contentPurpose },
      { table: 'mailbox', id: 'mail_id', column: 'mail', purpose: mailPurpose },
    ];
    return this.#ctx.reseal('content', places, signal);
  }

  async forgetPerson(userId: string): Promise<void> {
    await this.#ctx.db.tx(async ({ sql }) => {
      await sql`delete from messages where user_id = ${userId}`;
      await sql`delete from preferences where user_id = ${userId}`;
    });
  }
}
