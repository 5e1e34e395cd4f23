import { createCipheriv, createDecipheriv, createHash, createHmac, hkdfSync, randomBytes, timingSafeEqual } from 'node:crypto';
import type { Sealed, SealedBox as Box } from '@platform/sdk';

const KEY_BYTES = 32;
const MAX_DERIVED = 100;

/**
 * Encryption at rest: AES-256-GCM with the purpose as associated data. New boxes use the first key; older keys only open, so that a key can
 * be changed (GWY-083, GWY-085).
 */
export class SealedBox implements Box {
  readonly #keys: ReadonlyMap<string, Buffer>;
  readonly kid: string;
  /** Keys of fingerprints, by key and purpose. */
  readonly #derived = new Map<string, Buffer>();

  constructor(keys: readonly [Uint8Array, ...Uint8Array[]]) {
    // What a key is must not be in the message: it may be a secret cut short.
    if (keys.some(({ byteLength }) => byteLength !== KEY_BYTES)) throw new Error('a key that seals must be 32 bytes, base64');
    this.#keys = new Map(keys.map(key => [kidOf(key), Buffer.from(key)]));
    this.kid = kidOf(keys[0]);
  }

  seal(purpose: string, text: string): Sealed {
    const iv = randomBytes(12);
    const cipher = createCipheriv('aes-256-gcm', this.#key, iv).setAAD(Buffer.from(`${purpose}|${this.kid}`));
    const ct = Buffer.concat([cipher.update(text, 'utf8'), cipher.final()]);
    return {
      v: 1,
      kid: this.kid,
      iv: iv.toString('base64url'),
      ct: ct.toString('base64url'),
      tag: cipher.getAuthTag().toString('base64url'),
    };
  }

  open(purpose: string, sealed: Sealed): string | undefined {
    const key = this.#keys.get(sealed.kid);
    if (!key) return undefined;
    try {
      const decipher = createDecipheriv('aes-256-gcm', key, Buffer.from(sealed.iv, 'base64url'), { authTagLength: 16 });
      decipher.setAAD(Buffer.from(`${purpose}|${sealed.kid}`)).setAuthTag(Buffer.from(sealed.tag, 'base64url'));
      return Buffer.concat([decipher.update(Buffer.from(sealed.ct, 'base64url')), decipher.final()]).toString('utf8');
    } catch {
      return undefined;
    }
  }

  isStale(sealed: Sealed): boolean {
    return sealed.kid !== this.kid;
  }

  fingerprint(purpose: string, value: string): string {
    return this.#fingerprint(this.kid, purpose, value).toString('base64url');
  }

  isFingerprint(purpose: string, value: string, fingerprint: string): boolean {
    const given = Buffer.from(fingerprint, 'base64url');
    // Every key is tried, so that the time tells nothing of which one made it.
    const fits = [...this.#keys.keys()].map(
      kid => given.length === KEY_BYTES && timingSafeEqual(given, this.#fingerprint(kid, purpose, value)),
    );
    return fits.includes(true) && given.toString('base64url') === fingerprint;
  }

  #fingerprint(kid: string, purpose: string, value: string): Buffer {
    return createHmac('sha256', this.#derive(kid, purpose)).update(value).digest();
  }

  #derive(kid: string, purpose: string): Buffer {
    const name = `${kid} ${purpose}`;
    const known = this.#derived.get(name);
    if (known) return known;
    const key = Buffer.from(hkdfSync('sha256', this.#keys.get(kid) as Buffer, Buffer.alloc(0), purpose, KEY_BYTES));
    if (this.#derived.size < MAX_DERIVED) this.#derived.set(name, key);
    return key;
  }

  get #key(): Buffer {
    return this.#keys.get(this.kid) as Buffer;
  }
}

const kidOf = (key: Uint8Array): string => createHash('sha256').update(key).digest('hex').slice(0, 8);
