import type { RequestOf } from '@platform/sdk';
import type { Contract, Ctx } from '../context.ts';
import type { Recoveries } from '../recovery/recoveries.ts';
import type { Sessions } from '../sign-in/sessions.ts';
import type { AccountVisit } from './account-visit.ts';
import type { Arrival } from './arrival.ts';
import type { PasswordChange } from './password/password-change.ts';
import type { PasswordDesk } from './password/password-desk.ts';

interface Parts {
  readonly arrival: Arrival;
  readonly change: PasswordChange;
  readonly passwords: PasswordDesk;
  readonly recoveries: Recoveries;
  readonly sessions: Sessions;
  readonly visits: AccountVisit;
}

/** The account page: who one is here, where one is signed in, and the password. */
export class OwnAccount {
  readonly #ctx: Ctx;
  readonly #parts: Parts;

  constructor(ctx: Ctx, parts: Parts) {
    this.#ctx = ctx;
    this.#parts = parts;
  }

  async get(request: RequestOf<Contract, 'account'>) {
    const { recoveries, visits } = this.#parts;
    const { person } = await visits.reading(request);
    const recovery = await recoveries.confirmedOf(person.user_id);
    const { email, email_verified, display_name, mfa_enrolled, recovery_codes_left } = person;
    return {
      email,
      email_verified,
      display_name,
      mfa_enrolled,
      recovery_codes_left: mfa_enrolled ? recovery_codes_left : 0,
      has_password: person.hash !== null,
      recovery,
    };
  }

  /** A person who is signed in needs no other way in, and may be the owner whom somebody else wants to take the account from. */
  async endRecovery(request: RequestOf<Contract, 'endOwnRecovery'>): Promise<void> {
    const { recoveries, visits } = this.#parts;
    const { realm, person } = await visits.changing(request);
    if (!(await this.#ctx.db.tx(tx => recoveries.cancelOf(tx, realm, person.user_id, 'owner'))))
      throw this.#ctx.problem('recovery_not_found', { detail: 'It has ended already. Reload the page.' });
  }

  async sessions(request: RequestOf<Contract, 'ownSessions'>) {
    const { person, sid } = await this.#parts.visits.reading(request);
    const rows = await this.#parts.sessions.of(person);
    return { items: rows.map(row => ({ ...row, current: row.session_id === sid })) };
  }

  async endSession(request: RequestOf<Contract, 'endOwnSession'>): Promise<void> {
    const { sessions, visits } = this.#parts;
    const { realm, person } = await visits.changing(request);
    const { session_id: sid } = request.params;
    const own = (await sessions.of(person)).some(({ session_id }) => session_id === sid);
    // Somebody else's session is as unknown as none at all (G-K-02).
    if (!own) throw this.#ctx.problem('session_not_found');
    await sessions.end(realm.env_id, sid, 'sign_out');
  }

  async endOthers(request: RequestOf<Contract, 'endOtherSessions'>) {
    const { sessions, visits } = this.#parts;
    const { person, sid } = await visits.changing(request);
    const ended = await this.#ctx.db.tx(tx => sessions.endAll(tx, person, 'sign_out', sid));
    await sessions.mark(ended);
    return { ended: ended.length };
  }

  async changePassword(request: RequestOf<Contract, 'changeOwnPassword'>) {
    const { arrival, change, passwords, visits } = this.#parts;
    const { body, headers } = request;
    const { realm, person, amr } = await visits.proven(request, body.current_password);
    if (person.hash === null)
      throw this.#ctx.problem('wrong_password', {
        detail: 'The account has no password yet. Have a link sent to you at the page that resets it.',
      });
    passwords.require(body.password, person.email);
    if (await passwords.verify(person.hash, body.password)) throw passwords.refused('reused', 'Choose a password you have not used here.');
    const hash = await passwords.hash(body.password);
    const password = await change.commit(realm, person, hash, { action: 'auth.password.changed' }, async tx => {
      const still = await tx.sql<
        object[]
      >`select 1 from passwords where user_id = ${person.user_id} and changed_at::text = ${person.password_since} for update`;
      if (still.length === 0) throw this.#ctx.problem('wrong_password', { detail: 'The password was changed a moment ago.' });
    });
    return arrival.open(realm, { ...person, ...password }, { headers, amr, next: '/account' });
  }
}
