import { createPrivateKey, generateKeyPair, type KeyObject, sign } from 'node:crypto';
import { promisify } from 'node:util';
import type { Sealed, SealedBox } from '@platform/sdk';
import { calculateJwkThumbprint, type JWK } from 'jose';
import type { Ctx } from './context.ts';

const makePair = promisify(generateKeyPair) as (type: string, options?: object) => Promise<{ privateKey: KeyObject; publicKey: KeyObject }>;
const KINDS = [
  { alg: 'EdDSA', type: 'ed25519', options: {} },
  { alg: 'ES256', type: 'ec', options: { namedCurve: 'P-256' } },
  { alg: 'ML-DSA-65', type: 'ml-dsa-65', options: {} },
] as const;

interface Row {
  readonly kid: string;
  readonly alg: string;
  readonly public_jwk: JWK;
  readonly wrapped: Sealed;
}

/** The one key set of the platform: Ed25519 for tokens, ES256 and ML-DSA-65 beside it; private halves wrapped at rest (G-K-06, facts/identity 3). */
export class SigningKeys {
  readonly #ctx: Ctx;
  readonly #box: SealedBox;
  #private: readonly JWK[] = [];
  #tokenKey: { kid: string; key: KeyObject } | undefined;

  constructor(ctx: Ctx, box: SealedBox) {
    this.#ctx = ctx;
    this.#box = box;
  }

  /** Private JWKs, for the protocol library. */
  get jwks(): readonly JWK[] {
    return this.#private;
  }

  get publicJwks(): readonly JWK[] {
    return this.#private.map(({ d: _d, priv: _priv, ...key }) => key as JWK);
  }

  /** Loads the keys, making those that are missing; several processes at once end with the same set. */
  async load(): Promise<void> {
    await this.#ctx.db.tx(async tx => {
      await tx.sql`select pg_advisory_xact_lock(hashtextextended('platform:auth:keys', 0))`;
      const known = await tx.sql<{ alg: string }[]>`select alg from signing_keys where state = 'current'`;
      for (const { alg, type, options } of KINDS) {
        if (known.some(row => row.alg === alg)) continue;
        const { privateKey } = await makePair(type, options);
        const jwk = { ...(privateKey.export({ format: 'jwk' }) as JWK), alg, use: 'sig' };
        const kid = await calculateJwkThumbprint(jwk);
        const { d: _d, priv: _priv, ...publicJwk } = jwk;
        await tx.sql`insert into signing_keys ${tx.sql.row({ kid, alg, public_jwk: tx.sql.json({ ...publicJwk, kid }), wrapped: tx.sql.json(this.#box.seal('signing-key', JSON.stringify({ ...jwk, kid }))), state: 'current' })}`;
      }
    });
    const rows = await this.#ctx.db.sql<Row[]>`select kid, alg, public_jwk, wrapped from signing_keys where state <> 'retired' order by created_at`;
    this.#private = rows.map(({ wrapped }) => {
      const opened = this.#box.open('signing-key', wrapped);
      if (opened === undefined) throw new Error('a signing key does not open under PLATFORM_AUTH_KEY_ENCRYPTION_REF');
      return JSON.parse(opened) as JWK;
    });
    const token = this.#private.find(({ alg }) => alg === 'EdDSA');
    if (!token?.kid) throw new Error('no Ed25519 signing key');
    this.#tokenKey = { kid: token.kid, key: createPrivateKey({ key: token as JsonWebKey, format: 'jwk' }) };
  }

  /** A signed access token of our own making: `typ at+jwt`, EdDSA. */
  accessToken(claims: object): string {
    if (!this.#tokenKey) throw new Error('the signing keys are not loaded');
    const { kid, key } = this.#tokenKey;
    const encode = (value: object) => Buffer.from(JSON.stringify(value)).toString('base64url');
    const signed = `${encode({ typ: 'at+jwt', alg: 'EdDSA', kid })}.${encode(claims)}`;
    return `${signed}.${sign(null, Buffer.from(signed), key).toString('base64url')}`;
  }
}
