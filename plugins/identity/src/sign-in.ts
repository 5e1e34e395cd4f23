import { createHash, randomBytes } from 'node:crypto';
import { type RequestOf, reply, type SealedBox } from '@platform/sdk';
import type { Attempts } from './attempts.ts';
import type { AuthorizationSteps } from './authorization-steps.ts';
import { type BrowserSession, clearedSession, cookieOf, type Headers } from './browser-session.ts';
import type { Contract, Ctx } from './context.ts';
import type { PageGuard } from './page-guard.ts';
import { HashingBusy, type Passwords } from './passwords.ts';
import type { People, Person } from './people.ts';
import type { Realm, Realms } from './realms.ts';
import type { Sessions } from './sessions.ts';

const STEP_COOKIE = '__Host-platform-step';
const STEP_S = 600;
const UNKNOWN = 'Check the e-mail address and the password.';
type OAuthContext = RequestOf<Contract, 'signIn'>['body']['oauth'];

export interface SignInParts {
  readonly attempts: Attempts;
  readonly box: SealedBox;
  readonly browser: BrowserSession;
  readonly guard: PageGuard;
  readonly passwords: Passwords;
  readonly people: People;
  readonly realms: Realms;
  readonly sessions: Sessions;
  readonly steps: AuthorizationSteps;
}

/** The password steps of the hosted pages. They sign a browser in and send it back to the protocol; none of them mints a code (doc1, sign-in). */
export class SignIn {
  readonly #ctx: Ctx;
  readonly #parts: SignInParts;

  constructor(ctx: Ctx, parts: SignInParts) {
    this.#ctx = ctx;
    this.#parts = parts;
  }

  async signIn({ body, headers, hostname, ip }: RequestOf<Contract, 'signIn'>) {
    const { attempts, box, guard, passwords, people, realms } = this.#parts;
    const realm = await realms.onHost(hostname);
    await guard.require(realm, headers);
    // Addresses of people are no names for keys.
    const account = box.fingerprint('account', `${realm.env_id} ${body.email.trim().toLowerCase()}`).slice(0, 22);
    await attempts.admit(account, ip);
    const person = await people.byEmail(realm.env_id, body.email);
    const right = await this.#hashing(() => passwords.verify(person?.hash, body.password));
    if (!person || !right || person.status !== 'active') throw this.#ctx.problem('invalid_credentials', { detail: UNKNOWN });
    await attempts.succeeded(account);
    return person.must_change_password ? this.#askForNewPassword(person, body.oauth) : this.#finish(realm, person, body.oauth, headers);
  }

  async changePassword({ body, headers, hostname }: RequestOf<Contract, 'changePassword'>) {
    const { guard, passwords, people, realms, sessions } = this.#parts;
    const expired = () => this.#ctx.problem('token_expired', { detail: 'Sign in again with your old password.' });
    const realm = await realms.onHost(hostname);
    await guard.require(realm, headers);
    const token = cookieOf(headers, STEP_COOKIE);
    if (!token) throw expired();
    const [pending] = await this.#ctx.db.sql<{ user_id: string; uid: string | null }[]>`
      select user_id, uid from step_tokens where token_hash = ${hashOf(token)} and kind = 'password_change' and used_at is null and expires_at > now()`;
    const person = pending && (await people.withPassword(pending.user_id));
    if (person?.status !== 'active' || person.env_id !== realm.env_id) throw expired();
    // A password that is refused does not use up the step.
    const weakness = passwords.weakness(body.password, person.email);
    if (weakness) throw this.#weak('weak', weakness);
    if (await this.#hashing(() => passwords.verify(person.hash, body.password))) throw this.#weak('reused', 'Choose a password you have not used here.');
    const hash = await this.#hashing(() => passwords.hash(body.password));
    const ended = await this.#ctx.db.tx(async tx => {
      // Whoever sets the mark has used the step; two tabs cannot both (H-13).
      const used = await tx.sql<object[]>`update step_tokens set used_at = now() where token_hash = ${hashOf(token)} and used_at is null and expires_at > now() returning 1`;
      if (used.length === 0) throw expired();
      await tx.sql`update passwords set hash = ${hash}, changed_at = now() where user_id = ${person.user_id}`;
      await tx.sql`update users set must_change_password = false where user_id = ${person.user_id}`;
      await tx.sql`update step_tokens set used_at = now() where user_id = ${person.user_id} and used_at is null`;
      await tx.emit('platform:auth:user:updated', realm.env_id, { user_id: person.user_id, env_id: realm.env_id });
      await tx.audit({ action: 'auth.password.changed', envId: realm.env_id, resource: { type: 'user', id: person.user_id } });
      return sessions.endAll(tx, person, 'password_change');
    });
    await sessions.mark(ended);
    return this.#finish(realm, person, { ...body.oauth, ...(pending?.uid ? { uid: pending.uid } : {}) }, headers);
  }

  async signOut({ headers, hostname }: RequestOf<Contract, 'signOut'>) {
    const { browser, guard, realms, sessions } = this.#parts;
    const realm = await realms.onHost(hostname);
    await guard.require(realm, headers);
    const session = await browser.current(realm, headers);
    if (session) await sessions.end(realm.env_id, session.uid, 'sign_out');
    return reply(undefined, { status: 204, headers: { 'set-cookie': clearedSession } });
  }

  async #finish(realm: Realm, person: Person, oauth: OAuthContext, headers: Headers) {
    const { browser, steps } = this.#parts;
    const next = await steps.nextAfterSignIn(realm, oauth.uid, oauth.resume);
    const { tokenId, cookie, sid } = await browser.open(realm, person, headers, ['pwd']);
    await this.#ctx.db.tx(async tx => {
      await tx.sql`update users set last_sign_in_at = now() where user_id = ${person.user_id}`;
      await tx.audit({ action: 'auth.signed_in', envId: realm.env_id, resource: { type: 'user', id: person.user_id }, details: { session_id: sid } });
    });
    return reply({ status: 'ok' as const, session_token_id: tokenId, next }, { headers: { 'set-cookie': cookie } });
  }

  async #askForNewPassword(person: Person, oauth: OAuthContext) {
    const token = randomBytes(32).toString('base64url');
    await this.#ctx.db.sql`
      insert into step_tokens (token_hash, kind, user_id, uid, expires_at)
      values (${hashOf(token)}, 'password_change', ${person.user_id}, ${oauth.uid ?? null}, now() + make_interval(secs => ${STEP_S}))`;
    const carried = Object.entries(oauth).filter((entry): entry is [string, string] => typeof entry[1] === 'string');
    const next = carried.length > 0 ? `/password-change?${new URLSearchParams(carried)}` : '/password-change';
    const cookie = `${STEP_COOKIE}=${token}; Path=/; HttpOnly; Secure; SameSite=Strict; Max-Age=${STEP_S}`;
    return reply({ status: 'password_change_required' as const, next }, { headers: { 'set-cookie': cookie } });
  }

  #weak(code: string, message: string) {
    return this.#ctx.problem('weak_password', { detail: message, extra: { errors: [{ pointer: '/password', code, message }] } });
  }

  async #hashing<T>(work: () => Promise<T>): Promise<T> {
    try {
      return await work();
    } catch (error) {
      if (error instanceof HashingBusy) throw this.#ctx.problem('busy', { detail: 'Try again in a moment.', headers: { 'retry-after': '2' } });
      throw error;
    }
  }
}

const hashOf = (value: string) => createHash('sha256').update(value).digest();
