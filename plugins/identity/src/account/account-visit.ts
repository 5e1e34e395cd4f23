import type { Attempts } from '../sign-in/attempts.ts';
import type { BrowserSession } from '../sign-in/browser-session.ts';
import type { Headers } from '../sign-in/request-cookies.ts';
import type { Ctx } from '../context.ts';
import type { PageGuard } from '../sign-in/page-guard.ts';
import type { People } from '../people/people.ts';
import type { PersonWithPassword } from '../people/person.ts';
import type { Realm, Realms } from '../realms.ts';
import type { PasswordDesk } from './password/password-desk.ts';

export interface Visit {
  readonly realm: Realm;
  readonly person: PersonWithPassword;
  readonly sid: string;
  /** How the session was begun (RFC 8176). */
  readonly amr: readonly string[];
}
/** As long as somebody needs from the sign-in to what they came for. */
const FRESH_S = 300;

interface Arriving {
  readonly headers: Headers;
  readonly hostname: string;
}

/** Somebody at the own account: signed in with this browser, and for what matters with the password once more. */
export class AccountVisit {
  readonly #ctx: Ctx;
  readonly #parts: {
    attempts: Attempts;
    browser: BrowserSession;
    guard: PageGuard;
    passwords: PasswordDesk;
    people: People;
    realms: Realms;
  };

  constructor(
    ctx: Ctx,
    parts: { attempts: Attempts; browser: BrowserSession; guard: PageGuard; passwords: PasswordDesk; people: People; realms: Realms },
  ) {
    this.#ctx = ctx;
    this.#parts = parts;
  }

  async reading({ headers, hostname }: Arriving): Promise<Visit> {
    const { browser, people, realms } = this.#parts;
    const realm = await realms.onHost(hostname);
    const session = await browser.current(realm, headers);
    const person = session?.accountId ? await people.withPassword(session.accountId) : undefined;
    if (!session || person?.status !== 'active' || person.env_id !== realm.env_id)
      throw this.#ctx.problem('session_required', { detail: 'Sign in again.' });
    return { realm, person, sid: session.uid, amr: session.amr ?? ['pwd'] };
  }

  /** From the page itself, not from another site (H-07). */
  async changing(request: Arriving): Promise<Visit> {
    const { guard, realms } = this.#parts;
    await guard.require(await realms.onHost(request.hostname), request.headers);
    return this.reading(request);
  }

  /**
   * A browser that somebody left open is not enough: the password once more, or where there is none, the own means of signing in a moment
   * ago.
   */
  async proven(request: Arriving & { readonly ip: string }, password = ''): Promise<Visit> {
    const { attempts, passwords } = this.#parts;
    const visit = await this.changing(request);
    const { realm, person } = visit;
    if (person.hash === null) return this.#fresh(visit);
    const account = attempts.account(realm.env_id, person.email);
    const failures = await attempts.admit(account, request.ip);
    if (!(await passwords.verify(person.hash, password))) {
      await attempts.recordLock(failures, 'auth.sign_in.locked', realm.env_id, person.user_id);
      throw this.#ctx.problem('wrong_password', { detail: 'Enter the password of your account.' });
    }
    await attempts.succeeded(account);
    return visit;
  }

  async #fresh(visit: Visit): Promise<Visit> {
    const [fresh] = await this.#ctx.db.sql<
      object[]
    >`select 1 from session_devices where sid = ${visit.sid} and proven_at > now() - make_interval(secs => ${FRESH_S})`;
    if (!fresh)
      throw this.#ctx.problem('sign_in_again', {
        detail: 'The account has no password. Sign in again as you do, and then do this within five minutes.',
      });
    return visit;
  }
}
