import type { Logger, Sealed, SealedBox } from './context.ts';
import type { Sql } from './sql.ts';
import { isProblem } from './problem.ts';

const PER_PASS = 50;
const SEND_MS = 10_000;
const FIRST_RETRY_MS = 10_000;
const LONGEST_RETRY_MS = 600_000;
/** The time of what is not tried again, as Postgres spells it. */
const PARKED = 'infinity';
/** After so many tries a mail lets those go first that had fewer: one that nobody can take holds up nobody else's. */
const YIELDS_AFTER = 8;
/** Answers that speak of the way there, not of the message. */
const AWAY: ReadonlySet<number> = new Set([429, 502, 503, 504]);

interface Row {
  readonly mail_id: string;
  readonly sealed: Sealed;
  readonly attempts: number;
}
interface Failure {
  readonly away: boolean;
  readonly reason: string;
}
type State = 'flowing' | 'away' | 'refused';

export interface MailQueueParts<Mail extends object> {
  readonly ctx: {
    readonly db: { readonly sql: Sql };
    readonly clock: { now(): Date };
    readonly log: Logger;
    readonly platform: { newId(): string };
  };
  readonly box: SealedBox;
  /** Wire id of the service whose mail it is. */
  readonly service: string;
  /** Hands one mail over; throws when it was not taken. `mailId` is the same at every try. */
  send(mail: Mail, mailId: string, signal: AbortSignal): Promise<unknown>;
  /** A mail that was refused so often is parked: kept for an operator to see, and not tried again. Without it a mail is tried for ever. */
  readonly parkAfter?: number;
}

/**
 * Mail on its way to the notification service: queued with the change it tells of, sealed until it is delivered, then erased.
 * What is not taken stays and is tried again: for ever (registry rule 9, C29), or until it is parked. It keeps the table `mail_queue` of the service's own schema:
 * `mail_id, sealed, attempts, last_error, next_retry_at, created_at`, and whatever columns the service finds its mail by.
 */
export class MailQueue<Mail extends object> {
  readonly #parts: MailQueueParts<Mail>;
  #state: State = 'flowing';

  constructor(parts: MailQueueParts<Mail>) {
    this.#parts = parts;
  }

  /** In the caller's transaction; `about` are the service's own columns. */
  async enqueue(tx: { readonly sql: Sql }, mail: Mail, about: object = {}): Promise<void> {
    const { ctx, box } = this.#parts;
    const mailId = ctx.platform.newId();
    const now = ctx.clock.now().toISOString();
    const sealed = tx.sql.json(box.seal(this.#purpose(mailId), JSON.stringify(mail)));
    await tx.sql`insert into mail_queue ${tx.sql.row({ mail_id: mailId, ...about, sealed, next_retry_at: now, created_at: now })}`;
  }

  /** One pass: what is due, oldest first, one at a time. A service that is away ends the pass; the next begins at the same mail, until that has had its tries. */
  async push(signal: AbortSignal): Promise<void> {
    const { sql } = this.#parts.ctx.db;
    const now = this.#parts.ctx.clock.now();
    const due = await sql<Row[]>`
      select mail_id, sealed, attempts from mail_queue where next_retry_at <= ${now.toISOString()}
      order by (attempts >= ${YIELDS_AFTER}), created_at, mail_id limit ${PER_PASS}`;
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
      await this.#putOff(row, failure, now);
      if (failure.away) break;
    }
    // A pass with nothing due says nothing: what was refused may wait for its turn.
    if (due.length > 0) await this.#tell(state);
  }

  /** For operators: how much waits, and why. Nothing personal is in it. */
  async state() {
    const [row] = await this.#parts.ctx.db.sql<[{ queued: number; refused: number; oldest_at: string | null; last_error: string | null }]>`
      select count(*)::int as queued, (count(*) filter (where attempts > 0))::int as refused, min(created_at) as oldest_at,
        (select last_error from mail_queue where last_error is not null order by created_at limit 1) as last_error
      from mail_queue`;
    return row;
  }

  /** An outage is no fault of the mail: it makes it yield, and never parks it. */
  async #putOff({ mail_id, attempts }: Row, { away, reason }: Failure, now: Date): Promise<void> {
    const { ctx, parkAfter = Number.POSITIVE_INFINITY } = this.#parts;
    const tries = away ? Math.max(attempts, Math.min(attempts + 1, YIELDS_AFTER)) : attempts + 1;
    const parked = !away && tries >= parkAfter;
    const delay = away ? 0 : Math.min(LONGEST_RETRY_MS, FIRST_RETRY_MS * 2 ** Math.min(attempts, 16));
    const next = parked ? PARKED : new Date(now.getTime() + delay).toISOString();
    await ctx.db.sql`update mail_queue set attempts = ${tries}, last_error = ${reason}, next_retry_at = ${next} where mail_id = ${mail_id}`;
    if (parked) ctx.log.error({ mail_id, attempts: tries, reason }, 'a mail that was refused again and again is parked');
  }

  async #send(row: Row, signal: AbortSignal): Promise<Failure | undefined> {
    const opened = this.#parts.box.open(this.#purpose(row.mail_id), row.sealed);
    if (opened === undefined) return { away: false, reason: 'sealed under another key' };
    try {
      await this.#parts.send(JSON.parse(opened) as Mail, row.mail_id, AbortSignal.any([signal, AbortSignal.timeout(SEND_MS)]));
      return undefined;
    } catch (error) {
      // Status and code alone: a refusal's own words may quote the message.
      return isProblem(error) ? { away: AWAY.has(error.status), reason: `${error.status} ${error.code}` } : { away: true, reason: 'no answer' };
    }
  }

  async #tell(state: State): Promise<void> {
    if (state === this.#state) return;
    this.#state = state;
    const { log } = this.#parts.ctx;
    const { queued, last_error } = await this.state();
    if (state === 'flowing') log.info({ queued }, 'queued mail is delivered again');
    else log.warn({ queued, reason: last_error }, state === 'away' ? 'the notification service is away; mail waits' : 'the notification service refuses mail; it stays queued');
  }

  #purpose(mailId: string): string {
    return `${this.#parts.service}:mail:${mailId}`;
  }
}
