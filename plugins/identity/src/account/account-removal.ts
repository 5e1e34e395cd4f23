import type { Caller } from '@platform/sdk';
import { forgetPeople } from '../access/access-version.ts';
import type { Ctx, IdentityTx } from '../context.ts';
import type { LastAdministrator } from '../access/last-administrator.ts';
import type { Person } from '../people/person.ts';
import type { Sessions } from '../sign-in/sessions.ts';

/** The end of an account. What hangs on the person goes by the database's own rules; what only names the person goes here. */
export class AccountRemoval {
  readonly #ctx: Ctx;
  readonly #administrators: LastAdministrator;
  readonly #sessions: Sessions;

  constructor(ctx: Ctx, { administrators, sessions }: { administrators: LastAdministrator; sessions: Sessions }) {
    this.#ctx = ctx;
    this.#administrators = administrators;
    this.#sessions = sessions;
  }

  /** `first` runs in the transaction before anything else, and throws where the account may not go after all. */
  async remove(person: Person, caller: Caller, first: (tx: IdentityTx) => Promise<void> = async () => undefined): Promise<void> {
    const { user_id: userId, env_id: envId } = person;
    // Nobody locks the door from outside with the key inside.
    if (userId === caller.userId) throw this.#ctx.problem('own_account', { detail: 'Ask another administrator.' });
    const ended = await this.#ctx.db.tx(async tx => {
      await first(tx);
      await this.#administrators.requireOther(tx, person);
      const sids = await this.#sessions.endAll(tx, person, 'admin');
      const gone = await tx.sql<object[]>`delete from users where user_id = ${userId} returning 1`;
      if (gone.length === 0) throw this.#ctx.problem('user_not_found');
      await tx.sql`delete from oidc_state where env_id = ${envId} and account_id = ${userId}`;
      if (sids.length > 0) await tx.sql`delete from session_devices where sid in ${tx.sql.list(sids)}`;
      await tx.emit('platform:auth:user:deleted', envId, { user_id: userId, env_id: envId });
      await tx.audit({ action: 'auth.user.deleted', envId, caller, resource: { type: 'user', id: userId } });
      return sids;
    });
    await forgetPeople(this.#ctx, [userId]);
    await this.#sessions.mark(ended);
  }
}
