import type { Attempts } from '../attempts.ts';
import type { BrowserSession, Headers } from '../browser-session.ts';
import type { Ctx } from '../context.ts';
import type { PageGuard } from '../page-guard.ts';
import type { People, Person } from '../people.ts';
import type { Realm, Realms } from '../realms.ts';
import type { PasswordDesk } from './password-desk.ts';

export interface Visit {
  readonly realm: Realm;
  readonly person: Person & { readonly hash: string | null };
  readonly sid: string;
  /** How the session was begun (RFC 8176). */
  readonly amr: readonly string[];
}
interface Arriving {
  readonly headers: Headers;
  readonly hostname: string;
}

/** Somebody at the own account: signed in with this browser, and for what matters with the password once more. */
export class AccountVisit {
  readonly #ctx: Ctx;
  readonly #parts: { attempts: Attempts; browser: BrowserSession; guard: PageGuard; passwords: PasswordDesk; people: People; realms: Realms };

  constructor(ctx: Ctx, parts: { attempts: Attempts; browser: BrowserSession; guard: PageGuard; passwords: PasswordDesk; people: People; realms: Realms }) {
    this.#ctx = ctx;
    this.#parts = parts;
  }

  async reading({ headers, hostname }: Arriving): Promise<Visit> {
    const { browser, people, realms } = this.#parts;
    const realm = await realms.onHost(hostname);
    const session = await browser.current(realm, headers);
    const person = session?.accountId ? await people.withPassword(session.accountId) : undefined;
    if (!session || person?.status !== 'active' || person.env_id !== realm.env_id) throw this.#ctx.problem('session_required', { detail: 'Sign in again.' });
    return { realm, person, sid: session.uid, amr: session.amr ?? ['pwd'] };
  }

  /** From the page itself, not from another site (H-07). */
  async changing(request: Arriving): Promise<Visit> {
    const { guard, realms } = this.#parts;
    await guard.require(await realms.onHost(request.hostname), request.headers);
    return this.reading(request);
  }

  /** A browser that somebody left open is not enough. */
  async proven(request: Arriving & { readonly ip: string }, password: string): Promise<Visit> {
    const { attempts, passwords } = this.#parts;
    const visit = await this.changing(request);
    const { realm, person } = visit;
    const account = attempts.account(realm.env_id, person.email);
    const failures = await attempts.admit(account, request.ip);
    if (!(await passwords.verify(person.hash, password))) {
      await attempts.recordLock(failures, 'auth.sign_in.locked', realm.env_id, person.user_id);
      throw this.#ctx.problem('wrong_password', { detail: 'Enter the password of your account.' });
    }
    await attempts.succeeded(account);
    return visit;
  }
}
