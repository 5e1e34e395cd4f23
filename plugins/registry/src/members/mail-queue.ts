import { isProblem, type Sealed, type SealedBox, SYSTEM } from '@platform/sdk';
import type { Ctx, RegistryTx } from '../context.ts';

const PER_PASS = 50;
const SEND_MS = 10_000;
const FIRST_RETRY_MS = 10_000;
const LONGEST_RETRY_MS = 600_000;
/** Answers that speak of the way there, not of the message. */
const AWAY: ReadonlySet<number> = new Set([429, 502, 503, 504]);

export interface Mail {
  readonly to: string;
  readonly subject: string;
  readonly body: string;
  readonly invitation_id: string;
  readonly correlation_id: string;
}
interface Row {
  readonly mail_id: string;
  readonly sealed: Sealed;
  readonly attempts: number;
}
type State = 'flowing' | 'away' | 'refused';

/**
 * Mail on its way to the notification service: queued with the change it tells of, sealed until it is delivered, then erased.
 * What is not taken stays and is tried again for ever (registry rule 9, C29).
 */
export class MailQueue {
  readonly #ctx: Ctx;
  readonly #box: SealedBox;
  #state: State = 'flowing';

  constructor(ctx: Ctx, box: SealedBox) {
    this.#ctx = ctx;
    this.#box = box;
  }

  async enqueue(tx: RegistryTx, orgId: string, mail: Mail): Promise<void> {
    const mailId = this.#ctx.platform.newId();
    const now = this.#ctx.clock.now().toISOString();
    const sealed = tx.sql.json(this.#box.seal(purposeOf(mailId), JSON.stringify(mail)));
    await tx.sql`insert into mail_queue ${tx.sql.row({ mail_id: mailId, org_id: orgId, invitation_id: mail.invitation_id, sealed, next_retry_at: now, created_at: now })}`;
  }

  /** A withdrawn invitation needs no mail any more. */
  async withdraw(tx: RegistryTx, invitationId: string): Promise<void> {
    await tx.sql`delete from mail_queue where invitation_id = ${invitationId}`;
  }

  /** One pass: what is due, oldest first, one at a time. A service that is away ends the pass; the next begins at the same mail. */
  async push(signal: AbortSignal): Promise<void> {
    const { sql } = this.#ctx.db;
    const now = this.#ctx.clock.now();
    const due = await sql<Row[]>`select mail_id, sealed, attempts from mail_queue where next_retry_at <= ${now.toISOString()} order by created_at, mail_id limit ${PER_PASS}`;
    let state: State = 'flowing';
    for (const row of due) {
      if (signal.aborted) return;
      const failure = await this.#send(row, signal);
      if (signal.aborted && failure) return;
      if (!failure) {
        await sql`delete from mail_queue where mail_id = ${row.mail_id}`;
        continue;
      }
      state = failure.away ? 'away' : 'refused';
      const delay = failure.away ? 0 : Math.min(LONGEST_RETRY_MS, FIRST_RETRY_MS * 2 ** Math.min(row.attempts, 16));
      await sql`update mail_queue set attempts = attempts + 1, last_error = ${failure.reason}, next_retry_at = ${new Date(now.getTime() + delay).toISOString()} where mail_id = ${row.mail_id}`;
      if (failure.away) break;
    }
    // A pass with nothing due says nothing: what was refused may wait for its turn.
    if (due.length > 0) await this.#tell(state);
  }

  /** For operators: how much waits, and why. Nothing personal is in it. */
  async state() {
    const [row] = await this.#ctx.db.sql<[{ queued: number; refused: number; oldest_at: string | null; last_error: string | null }]>`
      select count(*)::int as queued, (count(*) filter (where attempts > 0))::int as refused, min(created_at) as oldest_at,
        (select last_error from mail_queue where last_error is not null order by created_at limit 1) as last_error
      from mail_queue`;
    return row;
  }

  async #send(row: Row, signal: AbortSignal): Promise<{ away: boolean; reason: string } | undefined> {
    const opened = this.#box.open(purposeOf(row.mail_id), row.sealed);
    if (opened === undefined) return { away: false, reason: 'sealed under another key' };
    const { to, subject, body, invitation_id, correlation_id } = JSON.parse(opened) as Mail;
    try {
      await this.#ctx.services.notification.send({
        body: {
          env_id: SYSTEM.envId,
          category: 'system',
          // Who is invited may have no account yet (G-POST-01).
          recipient: { user_id: `email:${to}`, email: to },
          subject,
          body,
          channels: ['email'],
          resource_refs: [{ type: 'invitation', id: invitation_id }],
          idempotency_key: row.mail_id,
          correlation_id,
        },
        idempotencyKey: row.mail_id,
        signal: AbortSignal.any([signal, AbortSignal.timeout(SEND_MS)]),
      });
      return undefined;
    } catch (error) {
      // Status and code alone: a refusal's own words may quote the message.
      return isProblem(error) ? { away: AWAY.has(error.status), reason: `${error.status} ${error.code}` } : { away: true, reason: 'no answer' };
    }
  }

  async #tell(state: State): Promise<void> {
    if (state === this.#state) return;
    this.#state = state;
    const { queued, last_error } = await this.state();
    if (state === 'flowing') this.#ctx.log.info({ queued }, 'queued mail is delivered again');
    else this.#ctx.log.warn({ queued, reason: last_error }, state === 'away' ? 'the notification service is away; mail waits' : 'the notification service refuses mail; it stays queued');
  }
}

const purposeOf = (mailId: string): string => `sys:mail:${mailId}`;
