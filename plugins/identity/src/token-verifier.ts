import { createPublicKey, type KeyObject, verify } from 'node:crypto';
import type { Ctx } from './context.ts';
import type { SigningKeys } from './signing-keys.ts';

export interface TokenClaims {
  readonly iss: string;
  readonly sub: string;
  readonly aud: string | readonly string[];
  readonly exp: number;
  readonly client_id: string;
  readonly token_type: 'access' | 'm2m' | 'delegated';
  readonly env_id?: string;
  readonly auth_env?: string;
  readonly sid?: string;
  readonly scope?: string;
  readonly vertical?: string;
  readonly cnf?: { readonly 'x5t#S256'?: string };
}

/** Checks tokens that were issued here: signature, time, revocation. For the exchange, introspection and revocation. */
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
    const [head = '', body = '', signature = ''] = token.split('.');
    try {
      const header = JSON.parse(Buffer.from(head, 'base64url').toString()) as { kid?: string; typ?: string; alg?: string };
      if (header.typ !== 'at+jwt' || header.alg !== 'EdDSA') return undefined;
      const key = this.#keyOf(header.kid);
      if (!key || !verify(null, Buffer.from(`${head}.${body}`), key, Buffer.from(signature, 'base64url'))) return undefined;
      const claims = JSON.parse(Buffer.from(body, 'base64url').toString()) as TokenClaims;
      return claims.exp * 1_000 < this.#ctx.clock.now().getTime() ? undefined : claims;
    } catch {
      return undefined;
    }
  }

  /** Asked where the truth is. A database that is away is an error, never «not revoked» and never «invalid». */
  async #revoked({ sub, sid }: TokenClaims): Promise<boolean> {
    const rows = await this.#ctx.db.sql<object[]>`
      select 1 from revocations where expires_at > now() and ((kind = 'sub' and value = ${sub}) or (kind = 'sid' and value = ${sid ?? ''})) limit 1`;
    return rows.length > 0;
  }

  #keyOf(kid: string | undefined): KeyObject | undefined {
    const jwk = this.#keys.publicJwks.find(key => key.kid === kid && key.alg === 'EdDSA');
    return jwk && createPublicKey({ key: jwk as JsonWebKey, format: 'jwk' });
  }
}
