import type { RequestOf } from '@platform/sdk';
import { bumpPeople } from '../access/access-version.ts';
import type { Attempts } from '../sign-in/attempts.ts';
import type { Contract, Ctx, IdentityTx } from '../context.ts';
import type { LastAdministrator } from '../access/last-administrator.ts';
import type { SecondFactor } from '../mfa/second-factor.ts';
import type { People } from '../people/people.ts';
import type { Person } from '../people/person.ts';
import type { Realms } from '../realms.ts';
import type { Recoveries } from '../recovery/recoveries.ts';
import type { Sessions } from '../sign-in/sessions.ts';
import type { AccountMailbox } from './account-mail.ts';
import type { StepTokens } from './step-tokens.ts';

interface Parts {
  readonly administrators: LastAdministrator;
  readonly attempts: Attempts;
  readonly factor: SecondFactor;
  readonly mailbox: AccountMailbox;
  readonly people: People;
  readonly realms: Realms;
  readonly recoveries: Recoveries;
  readonly sessions: Sessions;
  readonly steps: StepTokens;
}
type Asked = RequestOf<Contract, 'disableUser'>;

/** What administrators do to accounts of others. Each may be repeated; only what changed something is recorded. */
export class AccountAdministration {
  readonly #ctx: Ctx;
  readonly #parts: Parts;

  constructor(ctx: Ctx, parts: Parts) {
    this.#ctx = ctx;
    this.#parts = parts;
  }

  async disable(request: Asked) {
    const { administrators, people, realms, recoveries, sessions, steps } = this.#parts;
    const person = await people.reachable(request);
    // Nobody locks the door from outside with the key inside.
    if (person.user_id === request.caller.userId) throw this.#ctx.problem('own_account', { detail: 'Ask another administrator.' });
    const realm = await realms.find(person.env_id);
    const ended = await this.#ctx.db.tx(async tx => {
      await administrators.requireOther(tx, person);
      const changed = await tx.sql<
        object[]
      >`update users set status = 'disabled' where user_id = ${person.user_id} and status <> 'disabled' returning 1`;
      if (changed.length > 0) await this.#record(tx, request, person, 'auth.user.disabled');
      if (realm) await recoveries.cancelOf(tx, realm, person.user_id, 'account_closed');
      await steps.voidAll(tx.sql, person.user_id);
      return sessions.endAll(tx, person, 'admin');
    });
    await bumpPeople(this.#ctx, [person.user_id]);
    await sessions.mark(ended);
    return people.get(request);
  }

  async enable(request: Asked) {
    const { people } = this.#parts;
    const person = await people.reachable(request);
    await this.#ctx.db.tx(async tx => {
      const changed = await tx.sql<
        object[]
      >`update users set status = 'active' where user_id = ${person.user_id} and status = 'disabled' returning 1`;
      if (changed.length > 0) await this.#record(tx, request, person, 'auth.user.enabled');
    });
    await bumpPeople(this.#ctx, [person.user_id]);
    return people.get(request);
  }

  async unlock(request: Asked) {
    const { attempts, people } = this.#parts;
    const person = await people.reachable(request);
    await attempts.succeeded(attempts.account(person.env_id, person.email));
    await attempts.succeeded(attempts.secondFactor(person.user_id));
    await this.#ctx.db.tx(async tx => {
      await tx.sql`update users set status = 'active' where user_id = ${person.user_id} and status = 'locked'`;
      await this.#record(tx, request, person, 'auth.user.unlocked');
    });
    await bumpPeople(this.#ctx, [person.user_id]);
    return people.get(request);
  }

  /** For somebody who lost the app and the recovery codes. Everybody who is signed in with them is signed out. */
  async resetMfa(request: Asked) {
    const { factor, mailbox, people, realms, sessions, steps } = this.#parts;
    const person = await people.reachable(request);
    // The owner takes it away with the password; a browser that was left open, or a stolen token, is not enough.
    if (person.user_id === request.caller.userId)
      throw this.#ctx.problem('own_account', { detail: 'Remove it on the page of your account, or ask another administrator.' });
    const ended = await this.#ctx.db.tx(async tx => {
      if (!(await factor.remove(tx.sql, person.user_id)))
        throw this.#ctx.problem('mfa_not_enrolled', { detail: 'The person signs in with the password alone.' });
      await this.#record(tx, request, person, 'auth.mfa.reset');
      await steps.voidAll(tx.sql, person.user_id);
      const realm = await realms.find(person.env_id);
      if (realm) await mailbox.tell(tx, realm, person, 'mfa_removed');
      return sessions.endAll(tx, person, 'admin');
    });
    await sessions.mark(ended);
    return people.get(request);
  }

  async #record(tx: IdentityTx, { caller }: Asked, person: Person, action: string): Promise<void> {
    await tx.emit('platform:auth:user:updated', person.env_id, { user_id: person.user_id, env_id: person.env_id });
    await tx.audit({ action, envId: person.env_id, caller, resource: { type: 'user', id: person.user_id } });
  }
}
