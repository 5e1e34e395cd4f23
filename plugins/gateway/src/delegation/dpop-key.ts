import { hash } from 'node:crypto';
import { type CryptoKey, calculateJwkThumbprint, exportJWK, generateKeyPair, importJWK, type JWK, SignJWT } from 'jose';
import type { Ctx } from '../context.ts';

const ALGORITHM = 'ES256';

/** A key that one token is bound to, and proofs that it is held (RFC 9449). */
export class DpopKey {
  readonly #private: JWK;

  private constructor(key: JWK) {
    this.#private = key;
  }

  static async make(): Promise<DpopKey> {
    const { privateKey } = await generateKeyPair(ALGORITHM, { extractable: true });
    return new DpopKey(await exportJWK(privateKey));
  }

  /** As {@link exported} gave it. */
  static from(text: string): DpopKey {
    return new DpopKey(JSON.parse(text) as JWK);
  }

  /** The private key; whoever keeps it seals it. */
  get exported(): string {
    return JSON.stringify(this.#private);
  }

  thumbprint(): Promise<string> {
    return calculateJwkThumbprint(this.#public);
  }

  /** A proof for one request to this address, with the token it shows where there is one yet (RFC 9449 4.2). */
  async proof(ctx: Ctx, { method = 'POST', url, token }: { method?: string; url: string; token?: string }): Promise<string> {
    const ath = token === undefined ? {} : { ath: hash('sha256', token, 'base64url') };
    return new SignJWT({ htm: method, htu: url, jti: ctx.platform.newId(), ...ath })
      .setProtectedHeader({ alg: ALGORITHM, typ: 'dpop+jwt', jwk: this.#public })
      .setIssuedAt(ctx.clock.now())
      .sign((await importJWK(this.#private, ALGORITHM)) as CryptoKey);
  }

  get #public(): JWK {
    const { d: _private, ...shown } = this.#private;
    return shown;
  }
}
