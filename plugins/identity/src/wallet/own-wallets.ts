import type { RequestOf } from '@platform/sdk';
import type { AccountMailbox, Notice } from '../account/account-mail.ts';
import type { SignInMeans } from '../account/sign-in-means.ts';
import type { AccountVisit, Visit } from '../account/account-visit.ts';
import type { Attempts } from '../sign-in/attempts.ts';
import type { Contract, Ctx, IdentityTx } from '../context.ts';
import type { Realm } from '../realms.ts';
import { checksummed, readAddress } from './ethereum-address.ts';
import type { WalletChallenges } from './wallet-challenges.ts';

const MOST = 10;

interface Parts {
  readonly attempts: Attempts;
  readonly challenges: WalletChallenges;
  readonly mailbox: AccountMailbox;
  readonly means: SignInMeans;
  readonly visits: AccountVisit;
}

/**
 * Wallets of the own account. The password is shown once more, where there is one, and the wallet proves itself, before it may stand for
 * the person.
 */
export class OwnWallets {
  readonly #ctx: Ctx;
  readonly #parts: Parts;

  constructor(ctx: Ctx, parts: Parts) {
    this.#ctx = ctx;
    this.#parts = parts;
  }

  async list(request: RequestOf<Contract, 'ownWallets'>) {
    const { realm, person } = await this.#parts.visits.reading(request);
    const rows = await this.#ctx.db.sql<
      { address: string; linked_at: string }[]
    >`select address, linked_at from wallets where user_id = ${person.user_id} order by linked_at, address`;
    return { enabled: realm.wallet_sign_in !== 'off', items: rows.map(wireOf) };
  }

  async begin(request: RequestOf<Contract, 'beginWalletLink'>) {
    const { challenges, visits } = this.#parts;
    const { realm, person } = await visits.proven(request, request.body.password);
    this.#enabled(realm);
    return challenges.issue(realm, {
      address: request.body.address,
      path: '/account',
      statement: 'Link this wallet to your account.',
      userId: person.user_id,
    });
  }

  async link(request: RequestOf<Contract, 'linkWallet'>) {
    const { attempts, challenges, visits } = this.#parts;
    const visit = await visits.changing(request);
    const { realm, person } = visit;
    this.#enabled(realm);
    await attempts.slow(undefined, request.ip);
    const { challenge_id: challengeId, signature } = request.body;
    const { address } = await challenges.prove(realm, { challengeId, signature, userId: person.user_id });
    return this.#ctx.db.tx(async tx => {
      await tx.sql`select 1 from users where user_id = ${person.user_id} for update`;
      const held = await tx.sql<{ address: string }[]>`select address from wallets where user_id = ${person.user_id}`;
      if (held.length >= MOST)
        throw this.#ctx.problem('wallet_limit', { detail: `An account has at most ${MOST} wallets. Remove one first.` });
      const [row] = await tx.sql<{ address: string; linked_at: string }[]>`
        insert into wallets ${tx.sql.row({ env_id: realm.env_id, address, user_id: person.user_id })} on conflict do nothing
          returning address, linked_at`;
      if (!row) throw this.#ctx.problem('wallet_taken', { detail: 'Remove it from the account that has it first.' });
      await this.#record(tx, visit, 'auth.wallet.linked', 'wallet_linked', address);
      return wireOf(row);
    });
  }

  async unlink(request: RequestOf<Contract, 'unlinkWallet'>): Promise<void> {
    const visit = await this.#parts.visits.proven(request, request.body.password);
    const address = readAddress(request.params.address);
    await this.#ctx.db.tx(async tx => {
      const gone = await tx.sql<
        object[]
      >`delete from wallets where user_id = ${visit.person.user_id} and address = ${address ?? ''} returning 1`;
      if (gone.length === 0) throw this.#ctx.problem('wallet_not_found', { detail: 'The account has no such wallet.' });
      await this.#parts.means.requireSome(tx, visit.person);
      await this.#record(tx, visit, 'auth.wallet.unlinked', 'wallet_unlinked', address as string);
    });
  }

  #enabled(realm: Realm): void {
    if (realm.wallet_sign_in === 'off') throw this.#ctx.problem('wallet_disabled', { detail: 'This environment does not want it.' });
  }

  async #record(tx: IdentityTx, { realm, person }: Visit, action: string, notice: Notice, address: string): Promise<void> {
    await tx.emit('platform:auth:user:updated', realm.env_id, { user_id: person.user_id, env_id: realm.env_id });
    await tx.audit({ action, envId: realm.env_id, resource: { type: 'user', id: person.user_id }, details: { address } });
    await this.#parts.mailbox.tell(tx, realm, person, notice);
  }
}

const wireOf = ({ address, linked_at }: { address: string; linked_at: string }) => ({ address: checksummed(address), linked_at });
