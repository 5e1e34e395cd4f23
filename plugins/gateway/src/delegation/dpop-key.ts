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

  /** A proof for one POST to this address. */
  async proof(ctx: Ctx, url: string): Promise<string> {
    return new SignJWT({ htm: 'POST', htu: url, jti: ctx.platform.newId() })
      .setProtectedHeader({ alg: ALGORITHM, typ: 'dpop+jwt', jwk: this.#public })
      .setIssuedAt(ctx.clock.now())
      .sign((await importJWK(this.#private, ALGORITHM)) as CryptoKey);
  }

  get #public(): JWK {
    const { d: _private, ...shown } = this.#private;
    return shown;
  }
}
