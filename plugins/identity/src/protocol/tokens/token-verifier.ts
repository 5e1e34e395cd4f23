import { isProblem, type TokenClaims } from '@platform/sdk';
import type { Ctx } from '../../context.ts';
import type { SigningKeys } from '../../keys/signing-keys.ts';

/** For clocks that differ, as everywhere (G-K-06 step 5). */
const LEEWAY_S = 30;

/** Checks tokens that were issued here: signature, time, revocation. For the exchange, registration, introspection and revocation. */
export class TokenVerifier {
  readonly #ctx: Ctx;
  readonly #keys: SigningKeys;

  constructor(ctx: Ctx, keys: SigningKeys) {
    this.#ctx = ctx;
    this.#keys = keys;
  }

  /** The claims of a live token of ours, else `undefined`. */
  async read(token: string): Promise<TokenClaims | undefined> {
    const claims = await this.#verified(token);
    return claims && !(await this.#revoked(claims)) ? claims : undefined;
  }

  async #verified(token: string): Promise<TokenClaims | undefined> {
    try {
      const claims = await this.#ctx.tokens.claims(token, kid => this.#keys.verificationKey(kid));
      const now = this.#ctx.clock.now().getTime() / 1_000;
      return claims.exp < now || (claims.nbf !== undefined && claims.nbf > now + LEEWAY_S) ? undefined : claims;
    } catch (error) {
      if (isProblem(error)) return undefined;
      throw error;
    }
  }

  /** Asked where the truth is. A database that is away is an error, never «not revoked» and never «invalid». */
  async #revoked({ sub, sid, gid, jti, act }: TokenClaims): Promise<boolean> {
    const rows = await this.#ctx.db.sql<object[]>`
      select 1 from revocations where expires_at > now() and
        ((kind = 'sub' and value in (${sub}, ${act?.sub ?? sub})) or (kind = 'sid' and value = ${sid ?? ''})
          or (kind = 'gid' and value = ${gid ?? ''}) or (kind = 'jti' and value = ${jti})) limit 1`;
    return rows.length > 0;
  }
}
