import { type RequestOf, reply } from '@platform/sdk';
import type { Arrival } from '../account/arrival.ts';
import type { PasswordChange } from '../account/password/password-change.ts';
import type { PasswordDesk } from '../account/password/password-desk.ts';
import type { PasswordRenewal } from '../account/password/password-renewal.ts';
import type { StepTokens } from '../account/step-tokens.ts';
import type { Attempts } from './attempts.ts';
import type { AuthorizationSteps } from '../protocol/authorization-steps.ts';
import { type BrowserSession, clearedSession } from './browser-session.ts';
import type { Contract, Ctx } from '../context.ts';
import type { PageGuard } from './page-guard.ts';
import type { People } from '../people/people.ts';
import type { Realms } from '../realms.ts';
import type { Sessions } from './sessions.ts';

const UNKNOWN = 'Check the e-mail address and the password.';

export interface SignInParts {
  readonly arrival: Arrival;
  readonly attempts: Attempts;
  readonly authorizations: AuthorizationSteps;
  readonly browser: BrowserSession;
  readonly change: PasswordChange;
  readonly guard: PageGuard;
  readonly passwords: PasswordDesk;
  readonly people: People;
  readonly realms: Realms;
  readonly renewal: PasswordRenewal;
  readonly sessions: Sessions;
  readonly steps: StepTokens;
}

/**
 * The password steps of the hosted pages. They sign a browser in and send it back to the protocol; none of them mints a code (doc1,
 * sign-in).
 */
export class SignIn {
  readonly #ctx: Ctx;
  readonly #parts: SignInParts;

  constructor(ctx: Ctx, parts: SignInParts) {
    this.#ctx = ctx;
    this.#parts = parts;
  }

  async signIn({ body, headers, hostname, ip }: RequestOf<Contract, 'signIn'>) {
    const { arrival, attempts, authorizations, guard, passwords, people, realms, renewal } = this.#parts;
    const realm = await realms.onHost(hostname);
    await guard.require(realm, headers);
    const account = attempts.account(realm.env_id, body.email);
    const failures = await attempts.admit(account, ip);
    const person = await people.signingIn(realm.env_id, body.email, body.oauth.uid);
    const right = await passwords.verify(person?.hash, body.password);
    if (!person || !right || person.status !== 'active') {
      await attempts.recordLock(failures, 'auth.sign_in.locked', realm.env_id, person?.user_id);
      throw this.#ctx.problem('invalid_credentials', { detail: UNKNOWN });
    }
    const begun = await authorizations.begun(realm, body.oauth, person.begun);
    const [answer] = await Promise.all([
      arrival.proceed(realm, person, { oauth: body.oauth, headers, amr: ['pwd'], begun }),
      attempts.succeeded(account),
    ]);
    renewal.begin(person, body.password);
    return answer;
  }

  async changePassword({ body, headers, hostname }: RequestOf<Contract, 'changePassword'>) {
    const { arrival, change, guard, passwords, people, realms, steps } = this.#parts;
    const expired = () => this.#ctx.problem('token_expired', { detail: 'Sign in again with your old password.' });
    const realm = await realms.onHost(hostname);
    await guard.require(realm, headers);
    const step = await steps.find('password_change', steps.ofBrowser(headers));
    const person = step && (await people.withPassword(step.user_id));
    if (!step || person?.status !== 'active' || person.env_id !== realm.env_id) throw expired();
    // A password that is refused does not use up the step.
    passwords.require(body.password, person.email);
    if (await passwords.verify(person.hash, body.password)) throw passwords.refused('reused', 'Choose a password you have not used here.');
    const hash = await passwords.hash(body.password);
    const password = await change.commit(realm, person, hash, { action: 'auth.password.changed' }, async tx => {
      // The request that sets the mark has used the step; two tabs cannot both (H-13).
      if (!(await steps.use(tx.sql, step))) throw expired();
    });
    return arrival.proceed(
      realm,
      { ...person, ...password, must_change_password: false },
      { oauth: { ...body.oauth, ...step.context }, headers, amr: step.amr },
    );
  }

  async signOut({ headers, hostname }: RequestOf<Contract, 'signOut'>) {
    const { browser, guard, realms, sessions } = this.#parts;
    const realm = await realms.onHost(hostname);
    await guard.require(realm, headers);
    const session = await browser.current(realm, headers);
    if (session) await sessions.end(realm.env_id, session.uid, 'sign_out');
    return reply(undefined, { status: 204, headers: { 'set-cookie': clearedSession } });
  }
}
