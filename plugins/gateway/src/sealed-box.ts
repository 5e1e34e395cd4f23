import { createCipheriv, createDecipheriv, createHash, randomBytes } from 'node:crypto';

/** AES-256-GCM of a text, with the id of the key it was made with. */
export interface Sealed {
  readonly v: 1;
  readonly kid: string;
  readonly iv: string;
  readonly ct: string;
  readonly tag: string;
}

/** Encrypts what the gateway keeps about a session. New boxes use the current key; older keys only open (GWY-083, GWY-085). */
export class SealedBox {
  readonly #keys: ReadonlyMap<string, Buffer>;
  readonly #current: string;

  constructor(current: string, previous: readonly string[] = []) {
    const keys = [current, ...previous].map(text => Buffer.from(text, 'base64'));
    this.#keys = new Map(keys.map(key => [kidOf(key), key]));
    this.#current = kidOf(keys[0] as Buffer);
  }

  /** `purpose` is authenticated with the text: a box opens only where it was made for. */
  seal(text: string, purpose: string): Sealed {
    const iv = randomBytes(12);
    const cipher = createCipheriv('aes-256-gcm', this.#keys.get(this.#current) as Buffer, iv);
    cipher.setAAD(Buffer.from(`${purpose}|${this.#current}`));
    const ct = Buffer.concat([cipher.update(text, 'utf8'), cipher.final()]);
    return { v: 1, kid: this.#current, iv: iv.toString('base64url'), ct: ct.toString('base64url'), tag: cipher.getAuthTag().toString('base64url') };
  }

  /** The text, or `undefined` when the key is unknown or anything was changed. */
  open(sealed: Sealed, purpose: string): string | undefined {
    const key = this.#keys.get(sealed.kid);
    if (!key) return undefined;
    try {
      const decipher = createDecipheriv('aes-256-gcm', key, Buffer.from(sealed.iv, 'base64url'), { authTagLength: 16 });
      decipher.setAAD(Buffer.from(`${purpose}|${sealed.kid}`));
      decipher.setAuthTag(Buffer.from(sealed.tag, 'base64url'));
      return Buffer.concat([decipher.update(Buffer.from(sealed.ct, 'base64url')), decipher.final()]).toString('utf8');
    } catch {
      return undefined;
    }
  }

  /** Whether the box was made with an older key. */
  isStale(sealed: Sealed): boolean {
    return sealed.kid !== this.#current;
  }
}

const kidOf = (key: Buffer): string => createHash('sha256').update(key).digest('hex').slice(0, 8);
