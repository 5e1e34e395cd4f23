import type { Ctx, IdentityTx } from '../../context.ts';
import type { Person, PersonWithPassword } from '../../people/person.ts';
import type { Realm } from '../../realms.ts';
import type { Sessions } from '../../sign-in/sessions.ts';
import type { AccountMailbox, Notice } from '../account-mail.ts';
import type { StepTokens } from '../step-tokens.ts';

/**
 * What every change of a password comes with, in one transaction: no step and no session of before is good any more, and the owner is told.
 */
export class PasswordChange {
  readonly #ctx: Ctx;
  readonly #parts: { mailbox: AccountMailbox; sessions: Sessions; steps: StepTokens };

  constructor(ctx: Ctx, parts: { mailbox: AccountMailbox; sessions: Sessions; steps: StepTokens }) {
    this.#ctx = ctx;
    this.#parts = parts;
  }

  /**
   * `first` runs in the transaction before anything else, and throws where the change may not be made after all. @returns what the person
   * signs in with from now on.
   */
  async commit(
    realm: Realm,
    person: Person,
    hash: string,
    { action, notice = 'password_changed' }: { action: string; notice?: Notice },
    first: (tx: IdentityTx) => Promise<void>,
  ): Promise<Pick<PersonWithPassword, 'hash' | 'password_since'>> {
    const { mailbox, sessions, steps } = this.#parts;
    const { ended, password } = await this.#ctx.db.tx(async tx => {
      await first(tx);
      const [password] = await tx.sql<[{ hash: string; password_since: string }]>`
        insert into passwords (user_id, hash) values (${person.user_id}, ${hash}) on conflict (user_id) do update
          set hash = excluded.hash, changed_at = now()
        returning hash, changed_at::text as password_since`;
      await tx.sql`update users set must_change_password = false where user_id = ${person.user_id}`;
      await steps.voidAll(tx.sql, person.user_id);
      await tx.emit('platform:auth:user:updated', realm.env_id, { user_id: person.user_id, env_id: realm.env_id });
      await tx.audit({ action, envId: realm.env_id, resource: { type: 'user', id: person.user_id } });
      await mailbox.tell(tx, realm, person, notice);
      return { password, ended: await sessions.endAll(tx, person, 'password_change') };
    });
    await sessions.mark(ended);
    return password;
  }
}
