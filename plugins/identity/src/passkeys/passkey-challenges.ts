import { randomBytes } from 'node:crypto';
import { hashOf } from '../account/step-tokens.ts';
import type { Ctx } from '../context.ts';
import type { Realm } from '../realms.ts';

/** G-AUTH-08 gives a second factor five minutes; a passkey is no slower. */
export const CHALLENGE_S = 300;

/**
 * What an authenticator signs: 32 random bytes of which the hash is kept. Life: issued → used or expired. The request that sets the mark
 * has used it, before the signature is looked at: of any number at once that is one, and a wrong signature has used it too (H-13).
 */
export class PasskeyChallenges {
  readonly #ctx: Ctx;

  constructor(ctx: Ctx) {
    this.#ctx = ctx;
  }

  async issue({ env_id }: Realm, userId?: string): Promise<string> {
    const challenge = randomBytes(32).toString('base64url');
    await this.#ctx.db.sql`
      insert into passkey_challenges (challenge_hash, env_id, user_id, expires_at)
      values (${hashOf(challenge)}, ${env_id}, ${userId ?? null}, now() + make_interval(secs => ${CHALLENGE_S}))`;
    return challenge;
  }

  /** One of a sign-in does not do for a set-up, nor one person's for another's. */
  async use({ env_id }: Realm, challenge: string, userId?: string): Promise<boolean> {
    const used = await this.#ctx.db.sql<object[]>`
      update passkey_challenges set used_at = now()
      where challenge_hash = ${hashOf(challenge)} and env_id = ${env_id} and user_id is not distinct from ${userId ?? null}::uuid
        and used_at is null and expires_at > now() returning 1`;
    return used.length > 0;
  }
}
