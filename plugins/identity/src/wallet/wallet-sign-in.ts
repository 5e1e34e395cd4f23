import type { RequestOf } from '@platform/sdk';
import type { Arrival } from '../account/arrival.ts';
import type { Attempts } from '../sign-in/attempts.ts';
import type { Contract, Ctx } from '../context.ts';
import type { PageGuard } from '../sign-in/page-guard.ts';
import type { People } from '../people/people.ts';
import type { Realm, Realms } from '../realms.ts';
import { checksummed } from './ethereum-address.ts';
import type { WalletChallenges } from './wallet-challenges.ts';

interface Parts {
  readonly arrival: Arrival;
  readonly attempts: Attempts;
  readonly challenges: WalletChallenges;
  readonly guard: PageGuard;
  readonly people: People;
  readonly realms: Realms;
}

/**
 * Signing in with a wallet (EIP-4361), where the environment wants it. The signature takes the place of the password; what else is asked
 * for stays.
 */
export class WalletSignIn {
  readonly #ctx: Ctx;
  readonly #parts: Parts;

  constructor(ctx: Ctx, parts: Parts) {
    this.#ctx = ctx;
    this.#parts = parts;
  }

  /** The same for every address: it does not say whose is linked. */
  async challenge({ body, headers, hostname, ip }: RequestOf<Contract, 'walletChallenge'>) {
    const { attempts, challenges } = this.#parts;
    const realm = await this.#enter(hostname, headers);
    await attempts.slow(attempts.account(realm.env_id, body.address), ip);
    return challenges.issue(realm, { address: body.address, path: '/wallet', statement: 'Sign in with this wallet.', context: body.oauth });
  }

  async verify({ body, headers, hostname, ip }: RequestOf<Contract, 'walletVerify'>) {
    const { arrival, attempts, challenges, people } = this.#parts;
    const realm = await this.#enter(hostname, headers);
    await attempts.slow(undefined, ip);
    const { address, context } = await challenges.prove(realm, { challengeId: body.challenge_id, signature: body.signature });
    const userId =
      (await this.#holder(realm, address)) ?? (realm.wallet_sign_in === 'sign_up' ? await this.#open(realm, address) : undefined);
    const person = userId ? await people.withPassword(userId) : undefined;
    if (person?.status !== 'active' || person.env_id !== realm.env_id)
      throw this.#ctx.problem('wallet_unknown', { detail: 'Sign in another way, and link the wallet on the page of your account.' });
    // RFC 8176: a key that software keeps.
    return arrival.proceed(realm, person, { oauth: context, headers, amr: ['swk'] });
  }

  async #enter(hostname: string, headers: RequestOf<Contract, 'walletVerify'>['headers']): Promise<Realm> {
    const { guard, realms } = this.#parts;
    const realm = await realms.onHost(hostname);
    await guard.require(realm, headers);
    if (realm.wallet_sign_in === 'off') throw this.#ctx.problem('wallet_disabled', { detail: 'Sign in with your e-mail address.' });
    return realm;
  }

  async #holder(realm: Realm, address: string): Promise<string | undefined> {
    const [row] = await this.#ctx.db.sql<
      { user_id: string }[]
    >`select user_id from wallets where env_id = ${realm.env_id} and address = ${address}`;
    return row?.user_id;
  }

  /** An account without an e-mail address, named by its wallet. One that was taken from an account opens no other in its name. */
  async #open(realm: Realm, address: string): Promise<string | undefined> {
    const userId = this.#ctx.platform.newId();
    const opened = await this.#ctx.db.tx(async tx => {
      const row = { user_id: userId, env_id: realm.env_id, email: checksummed(address), email_ci: address };
      const [made] = await tx.sql<object[]>`insert into users ${tx.sql.row(row)} on conflict do nothing returning 1`;
      if (!made) return false;
      await tx.sql`insert into wallets ${tx.sql.row({ env_id: realm.env_id, address, user_id: userId })}`;
      await tx.emit('platform:auth:user:created', realm.env_id, { user_id: userId, env_id: realm.env_id });
      await tx.audit({
        action: 'auth.user.signed_up',
        envId: realm.env_id,
        resource: { type: 'user', id: userId },
        details: { wallet: true },
      });
      return true;
    });
    return opened ? userId : this.#holder(realm, address);
  }
}
