import type { Sealed, SealedBox } from '@platform/sdk';
import type { Headers } from '../sign-in/browser-session.ts';
import type { Ctx, IdentityTx } from '../context.ts';
import { pageLanguage } from '../mail/page-language.ts';
import type { Realm, Realms } from '../realms.ts';

export type RequestKind = 'sign_up' | 'password_reset' | 'email_verification' | 'account_recovery';
export interface Asked {
  readonly email: string;
  readonly display_name?: string;
  readonly password_hash?: string;
  readonly group?: string;
  readonly client_id?: string;
  /** By which the account is opened. */
  readonly invitation?: string;
  /** Of the page on which it was asked. */
  readonly locale?: string;
}
/** What a request comes to, in one transaction; what it returns runs after the commit. */
export type Answer = (tx: IdentityTx, realm: Realm, asked: Asked) => Promise<(() => Promise<void>) | undefined>;

/** Who asks, and in which language the answer is read. */
export function askedBy(email: string, headers: Headers): Asked {
  const locale = pageLanguage(headers);
  return { email, ...(locale ? { locale } : {}) };
}

const PER_PASS = 50;
const RETRY_S = 10;
const LONGEST_RETRY_S = 600;
/** About an hour and a half of tries. What is parked is deleted with everything else that is a day old. */
const PARK_AFTER = 12;

/**
 * What people ask for at the pages without being signed in: to open an account, to reset a password, to have an address confirmed, to recover an account. The page's
 * request only writes it down, the same for everybody; whether there is an account is looked at afterwards. So neither the answer nor the
 * time it takes says who has one (IDN-007). It is looked at right away, and by the job where the process died.
 */
export class AccountRequests implements AsyncDisposable {
  readonly #ctx: Ctx;
  readonly #box: SealedBox;
  readonly #realms: Realms;
  readonly #answers: Readonly<Record<RequestKind, Answer>>;
  readonly #stopping = new AbortController();
  #passing: Promise<void> | undefined;
  #again = false;

  constructor(ctx: Ctx, { box, realms, answers }: { box: SealedBox; realms: Realms; answers: Readonly<Record<RequestKind, Answer>> }) {
    this.#ctx = ctx;
    this.#box = box;
    this.#realms = realms;
    this.#answers = answers;
  }

  async write(realm: Realm, kind: RequestKind, asked: Asked): Promise<void> {
    const { sql } = this.#ctx.db;
    const requestId = this.#ctx.platform.newId();
    const sealed = sql.json(this.#box.seal(purposeOf(requestId), JSON.stringify(asked)));
    await sql`insert into account_requests ${sql.row({ request_id: requestId, env_id: realm.env_id, kind, sealed })}`;
    this.#wake();
  }

  /** One pass over what is due. Several processes may pass at once: each request is taken by one. */
  async answer(signal: AbortSignal): Promise<void> {
    for (let count = 0; count < PER_PASS && !signal.aborted; count++) if (!(await this.#answerOne())) return;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#stopping.abort();
    await this.#passing;
  }

  #wake(): void {
    this.#again = true;
    this.#passing ??= this.#pass();
  }

  async #pass(): Promise<void> {
    await undefined;
    try {
      while (this.#again && !this.#stopping.signal.aborted) {
        this.#again = false;
        await this.answer(this.#stopping.signal);
      }
    } catch (error) {
      this.#ctx.log.warn({ err: error }, 'requests of the sign-in pages wait for the next pass');
    } finally {
      // In the same turn as the last look: who asks in the next one begins anew.
      this.#passing = undefined;
    }
  }

  /** @returns whether there was one. */
  async #answerOne(): Promise<boolean> {
    const { sql } = this.#ctx.db;
    // Whoever moves the time on has it for a moment; it comes back by itself where the work fails. New ones go first: one that fails holds up no other.
    const [row] = await sql<{ request_id: string; env_id: string; kind: RequestKind; sealed: Sealed; attempts: number }[]>`
      update account_requests set attempts = attempts + 1,
        run_at = now() + make_interval(secs => least(${LONGEST_RETRY_S}, ${RETRY_S} * 2 ^ least(attempts, 16)))
      where request_id = (select request_id from account_requests where run_at <= now() order by (attempts > 0), run_at limit 1 for update skip locked)
      returning request_id, env_id, kind, sealed, attempts`;
    if (!row) return false;
    const opened = this.#box.open(purposeOf(row.request_id), row.sealed);
    const realm = await this.#realms.find(row.env_id);
    try {
      const after = await this.#ctx.db.tx(async tx => {
        const taken = await tx.sql<object[]>`delete from account_requests where request_id = ${row.request_id} returning 1`;
        return taken.length > 0 && opened !== undefined && realm ? this.#answers[row.kind](tx, realm, JSON.parse(opened) as Asked) : undefined;
      });
      await after?.();
    } catch (error) {
      const parked = row.attempts >= PARK_AFTER;
      this.#ctx.log.error({ err: error, kind: row.kind, attempts: row.attempts }, `a request of the sign-in pages failed and is ${parked ? 'parked' : 'tried again'}`);
      if (parked) await sql`update account_requests set run_at = 'infinity' where request_id = ${row.request_id}`;
    }
    return true;
  }
}

const purposeOf = (requestId: string): string => `auth:request:${requestId}`;
