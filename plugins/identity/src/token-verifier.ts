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
    const [head = '', body = '', signature = ''] = token.split('.');
    try {
      const header = JSON.parse(Buffer.from(head, 'base64url').toString()) as { kid?: string; typ?: string; alg?: string };
      if (header.typ !== 'at+jwt' || header.alg !== 'EdDSA') return undefined;
      const key = this.#keyOf(header.kid);
      if (!key || !verify(null, Buffer.from(`${head}.${body}`), key, Buffer.from(signature, 'base64url'))) return undefined;
      const claims = JSON.parse(Buffer.from(body, 'base64url').toString()) as TokenClaims;
      if (claims.exp * 1_000 < this.#ctx.clock.now().getTime()) return undefined;
      return (await this.#revoked(claims)) ? undefined : claims;
    } catch {
      return undefined;
    }
  }

  async #revoked({ sub, sid }: TokenClaims): Promise<boolean> {
    const answers = await this.#ctx.kv.pipeline([['EXISTS', `revoked:sub:${sub}`], ['EXISTS', `revoked:sid:${sid ?? ''}`]]);
    return answers.some(answer => answer instanceof Error || Number(answer) > 0);
  }

  #keyOf(kid: string | undefined): KeyObject | undefined {
    const jwk = this.#keys.publicJwks.find(key => key.kid === kid && key.alg === 'EdDSA');
    return jwk && createPublicKey({ key: jwk as JsonWebKey, format: 'jwk' });
  }
}
