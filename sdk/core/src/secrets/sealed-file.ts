import { createCipheriv, createDecipheriv, hkdfSync, randomBytes } from 'node:crypto';
import { chmodSync, existsSync, linkSync, mkdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';

const IV_BYTES = 12;
const TAG_BYTES = 16;
const TIME_BYTES = 8;
const KEY_BYTES = 32;

/**
 * A file of mode 0600 whose content only this machine can read: AES-256-GCM under a key that is derived from the machine's own and from
 * what the file is for. The moment of sealing is part of what is authenticated. A content is whole or not there: it is written beside and
 * renamed.
 */
export class SealedFile {
  readonly #path: string;
  readonly #made: { readonly dataDir: string; readonly use: string };

  /** `use` keeps the keys of different files apart: one file's content is nothing in the place of another. */
  constructor(path: string, made: { readonly dataDir: string; readonly use: string }) {
    this.#path = path;
    this.#made = made;
  }

  /**
   * What was sealed last and when (milliseconds); nothing when there is no file. Throws when the content was changed or sealed elsewhere.
   */
  read(): { readonly content: Buffer; readonly sealedAt: number } | undefined {
    if (!existsSync(this.#path)) return undefined;
    const text = readFileSync(this.#path);
    const head = text.subarray(0, TIME_BYTES);
    const decipher = createDecipheriv('aes-256-gcm', this.#key(), text.subarray(TIME_BYTES, TIME_BYTES + IV_BYTES), {
      authTagLength: TAG_BYTES,
    }).setAAD(head);
    decipher.setAuthTag(text.subarray(TIME_BYTES + IV_BYTES, TIME_BYTES + IV_BYTES + TAG_BYTES));
    const content = Buffer.concat([decipher.update(text.subarray(TIME_BYTES + IV_BYTES + TAG_BYTES)), decipher.final()]);
    return { content, sealedAt: Number(head.readBigUInt64BE()) };
  }

  write(content: Uint8Array, sealedAt: number): void {
    const head = Buffer.alloc(TIME_BYTES);
    head.writeBigUInt64BE(BigInt(sealedAt));
    const iv = randomBytes(IV_BYTES);
    const cipher = createCipheriv('aes-256-gcm', this.#key(), iv, { authTagLength: TAG_BYTES }).setAAD(head);
    const sealed = Buffer.concat([cipher.update(content), cipher.final()]);
    mkdirSync(dirname(this.#path), { recursive: true, mode: 0o700 });
    writeFileSync(`${this.#path}.new`, Buffer.concat([head, iv, cipher.getAuthTag(), sealed]), { mode: 0o600 });
    chmodSync(`${this.#path}.new`, 0o600);
    renameSync(`${this.#path}.new`, this.#path);
  }

  remove(): void {
    rmSync(this.#path, { force: true });
  }

  #key(): Buffer {
    const { dataDir, use } = this.#made;
    return Buffer.from(hkdfSync('sha256', machineKey(dataDir), '', use, KEY_BYTES));
  }
}

/** The key of this machine, made once: 32 bytes that only their owner reads. */
function machineKey(dataDir: string): Buffer {
  const path = join(dataDir, 'captain', 'machine.key');
  mkdirSync(dirname(path), { recursive: true, mode: 0o700 });
  if (!existsSync(path)) {
    // Written whole beside it and linked: nobody reads half a key, and the first process makes it.
    const whole = `${path}.${process.pid}.new`;
    writeFileSync(whole, randomBytes(KEY_BYTES), { mode: 0o600, flush: true });
    try {
      linkSync(whole, path);
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error;
    } finally {
      rmSync(whole, { force: true });
    }
  }
  const key = readFileSync(path);
  if (key.length !== KEY_BYTES) throw new Error(`${path} has ${key.length} bytes, not ${KEY_BYTES}: it was changed or cut short.`);
  return key;
}
