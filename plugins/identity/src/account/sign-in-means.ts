import type { Ctx, IdentityTx } from '../context.ts';
import type { Person } from '../people/person.ts';

/** What an account signs in with. An account without a password must not lose the last of it. */
export class SignInMeans {
  readonly #ctx: Ctx;

  constructor(ctx: Ctx) {
    this.#ctx = ctx;
  }

  /**
   * In the transaction that takes one away, after it did: a person who would be left with nothing keeps it. A proven address counts, for
   * it sets a password.
   */
  async requireSome({ sql }: IdentityTx, { user_id: userId }: Pick<Person, 'user_id'>): Promise<void> {
    // One after the other, or two that go at once would each see the other.
    await sql`select 1 from users where user_id = ${userId} for update`;
    const left = await sql<object[]>`
      select 1 from users where user_id = ${userId} and email_verified and position('@' in email) > 0
      union all select 1 from passwords where user_id = ${userId}
      union all select 1 from wallets where user_id = ${userId}
      union all select 1 from passkeys where user_id = ${userId}
      union all select 1 from upstream_identities where user_id = ${userId} limit 1`;
    if (left.length === 0) throw this.#ctx.problem('last_means', { detail: 'Add another wallet or a passkey first.' });
  }
}
