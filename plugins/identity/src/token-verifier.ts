import { verify } from 'node:crypto';
import type { Ctx } from './context.ts';
import type { SigningKeys } from './signing-keys.ts';

export interface TokenClaims {
  readonly iss: string;
  readonly sub: string;
  readonly aud: string | readonly string[];
  readonly exp: number;
  readonly jti: string;
  readonly client_id: string;
  readonly token_type: 'access' | 'm2m' | 'delegated';
  readonly env_id?: string;
  readonly auth_env?: string;
  readonly sid?: string;
  readonly gid?: string;
  readonly scope?: string;
  readonly vertical?: string;
  readonly limited?: boolean;
  readonly act?: { readonly sub: string };
  readonly cnf?: { readonly 'x5t#S256'?: string; readonly jkt?: string };
}

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
    const claims = this.#verified(token);
    return claims && !(await this.#revoked(claims)) ? claims : undefined;
  }

  #verified(token: string): TokenClaims | undefined {
    const [head = '', body = '', signature = '', ...rest] = token.split('.');
    try {
      const header = JSON.parse(Buffer.from(head, 'base64url').toString()) as { kid?: string; typ?: string; alg?: string };
      const found = typeof header.kid === 'string' ? this.#keys.verificationKey(header.kid) : undefined;
      // The algorithm is the key's, never the token's word for it.
      if (header.typ !== 'at+jwt' || !found || header.alg !== found.alg || rest.length > 0) return undefined;
      const key = found.alg === 'ES256' ? { key: found.key, dsaEncoding: 'ieee-p1363' as const } : found.key;
      if (!verify(found.alg === 'ES256' ? 'sha256' : null, Buffer.from(`${head}.${body}`), key, Buffer.from(signature, 'base64url'))) return undefined;
      const claims = JSON.parse(Buffer.from(body, 'base64url').toString()) as TokenClaims;
      return claims.exp * 1_000 < this.#ctx.clock.now().getTime() ? undefined : claims;
    } catch {
      return undefined;
    }
  }

  /** Asked where the truth is. A database that is away is an error, never «not revoked» and never «invalid». */
  async #revoked({ sub, sid, gid, jti, act }: TokenClaims): Promise<boolean> {
    const rows = await this.#ctx.db.sql<object[]>`
      select 1 from revocations where expires_at > now() and
        ((kind = 'sub' and value in (${sub}, ${act?.sub ?? sub})) or (kind = 'sid' and value = ${sid ?? ''}) or (kind = 'gid' and value = ${gid ?? ''}) or (kind = 'jti' and value = ${jti})) limit 1`;
    return rows.length > 0;
  }
}
