import { createCipheriv, createDecipheriv, createHmac, hkdfSync, randomBytes } from 'node:crypto';

/** Encryption at rest under one 32-byte key: AES-256-GCM, a fresh IV in front, the purpose as associated data. */
export class SealedBox {
  readonly #key: Buffer;

  constructor(key: Uint8Array) {
    if (key.byteLength !== 32) throw new Error('the key encryption key must be 32 bytes, base64');
    this.#key = Buffer.from(key);
  }

  seal(purpose: string, plain: string): Buffer {
    const iv = randomBytes(12);
    const cipher = createCipheriv('aes-256-gcm', this.#key, iv).setAAD(Buffer.from(purpose));
    return Buffer.concat([iv, cipher.update(plain, 'utf8'), cipher.final(), cipher.getAuthTag()]);
  }

  open(purpose: string, sealed: Uint8Array): string {
    const bytes = Buffer.from(sealed);
    const decipher = createDecipheriv('aes-256-gcm', this.#key, bytes.subarray(0, 12)).setAAD(Buffer.from(purpose));
    decipher.setAuthTag(bytes.subarray(-16));
    return Buffer.concat([decipher.update(bytes.subarray(12, -16)), decipher.final()]).toString('utf8');
  }

  /** A keyed, purpose-bound fingerprint that reveals nothing of its input. */
  fingerprint(purpose: string, value: string): string {
    return createHmac('sha256', Buffer.from(hkdfSync('sha256', this.#key, Buffer.alloc(0), purpose, 32)))
      .update(value)
      .digest('base64url');
  }
}
