import { createPrivateKey, createPublicKey, generateKeyPairSync, type KeyObject } from 'node:crypto';
import { join } from 'node:path';
import { calculateJwkThumbprint, type JWK } from 'jose';
import { readOptional, replaceFile } from '@platform/sdk';

interface Kept {
  readonly directory: string;
  readonly jwk: JWK;
  readonly kid: string | null;
  readonly contact: string;
}

/** The platform's account at the upstream authority: one ES256 key for good, its id from the first external order on (CA-023). */
export class UpstreamAccount {
  readonly #path: string;
  #kept: Kept;
  readonly key: KeyObject;
  readonly publicJwk: JWK;
  readonly thumbprint: string;

  private constructor(path: string, kept: Kept, parts: { key: KeyObject; publicJwk: JWK; thumbprint: string }) {
    this.#path = path;
    this.#kept = kept;
    this.key = parts.key;
    this.publicJwk = parts.publicJwk;
    this.thumbprint = parts.thumbprint;
  }

  /** The account of this directory; the key is made once and on disk before anybody hears of it. */
  static async open(dataDir: string, directory: string): Promise<UpstreamAccount> {
    const path = join(dataDir, 'upstream-account.json');
    const text = await readOptional(path);
    let kept = text === undefined ? undefined : (JSON.parse(text) as Kept);
    if (kept?.directory !== directory) {
      const jwk = generateKeyPairSync('ec', { namedCurve: 'P-256' }).privateKey.export({ format: 'jwk' }) as JWK;
      kept = { directory, jwk, kid: null, contact: '' };
      await replaceFile(path, JSON.stringify(kept));
    }
    const key = createPrivateKey({ key: kept.jwk as never, format: 'jwk' });
    const publicJwk = createPublicKey(key).export({ format: 'jwk' }) as JWK;
    return new UpstreamAccount(path, kept, { key, publicJwk, thumbprint: await calculateJwkThumbprint(publicJwk) });
  }

  get kid(): string | null {
    return this.#kept.kid;
  }

  async registered(kid: string, contact: string): Promise<void> {
    this.#kept = { ...this.#kept, kid, contact };
    await replaceFile(this.#path, JSON.stringify(this.#kept));
  }
}
