import { isId } from '@platform/sdk';
import { randomBytes } from 'node:crypto';
import type { OAuthContext } from '../account/step-tokens.ts';
import type { Ctx } from '../context.ts';
import type { Realm, Realms } from '../realms.ts';
import { readAddress } from './ethereum-address.ts';
import { messageText } from './wallet-message.ts';
import { signerOf } from './wallet-signature.ts';

const LIFETIME_S = 300;
/** Accounts that hold a key have the same address on every chain; this is the one that wallets know best. */
const CHAIN = 1;

interface Asked {
  readonly address: string;
  readonly path: '/wallet' | '/account';
  readonly statement: string;
  readonly context?: OAuthContext | undefined;
  /** Whose account the wallet is to be linked to. */
  readonly userId?: string;
}

/** What wallets are asked to sign. Life: issued → used or expired, five minutes at most; a wrong signature uses it up too. */
export class WalletChallenges {
  readonly #ctx: Ctx;
  readonly #realms: Realms;

  constructor(ctx: Ctx, { realms }: { realms: Realms }) {
    this.#ctx = ctx;
    this.#realms = realms;
  }

  async issue(realm: Realm, { address: given, path, statement, context, userId }: Asked) {
    const address = this.address(given);
    const challengeId = this.#ctx.platform.newId();
    const origin = this.#realms.issuer(realm);
    const now = this.#ctx.clock.now();
    const expires = new Date(now.getTime() + LIFETIME_S * 1_000).toISOString();
    const message = messageText({
      domain: new URL(origin).host,
      address,
      statement,
      uri: `${origin}${path}`,
      chainId: CHAIN,
      nonce: randomBytes(16).toString('hex'),
      issuedAt: now.toISOString(),
      expirationTime: expires,
      requestId: challengeId,
    });
    const { sql } = this.#ctx.db;
    await sql`
      insert into wallet_challenges (challenge_id, env_id, address, message, context, user_id, expires_at)
      values (${challengeId}, ${realm.env_id}, ${address}, ${message}, ${sql.json(context ?? {})}, ${userId ?? null}, ${expires})`;
    return { challenge_id: challengeId, message, expires_at: expires };
  }

  /** The address that was proven. The request that sets the mark has used the challenge; of any number at once that is one (H-13). */
  async prove(
    realm: Realm,
    { challengeId, signature, userId }: { challengeId: string; signature: string; userId?: string },
  ): Promise<{ address: string; context: OAuthContext }> {
    const now = this.#ctx.clock.now().toISOString();
    const [row] = isId(challengeId)
      ? await this.#ctx.db.sql<{ address: string; message: string; context: OAuthContext }[]>`
          update wallet_challenges set used_at = ${now}
          where challenge_id = ${challengeId} and env_id = ${realm.env_id} and user_id is not distinct from ${userId ?? null}::uuid
            and used_at is null and expires_at > ${now}
          returning address, message, context`
      : [];
    if (!row) throw this.#ctx.problem('token_expired', { detail: 'Connect the wallet again.' });
    if (signerOf(row.message, signature) !== row.address)
      throw this.#ctx.problem('wallet_refused', { detail: 'Sign the message with the wallet that was connected.' });
    return row;
  }

  address(given: string): string {
    const address = readAddress(given);
    if (!address) throw this.#ctx.problem('wallet_address_invalid', { detail: 'The checksum of the address is wrong (EIP-55).' });
    return address;
  }
}
