import { createCipheriv, createDecipheriv, hkdfSync, randomBytes } from 'node:crypto';
import { existsSync, readFileSync, renameSync, writeFileSync } from 'node:fs';

const IV_BYTES = 12;
const TAG_BYTES = 16;

/**
 * The state of an infrastructure program between its runs: it holds what the program was told, so it lies sealed (AES-256-GCM, by the machine's
 * key) and in clear only while the program runs, in a folder of its own (SUP-059).
 */
export class SealedState {
  readonly #path: string;
  readonly #key: Buffer;

  constructor(path: string, machineKey: Uint8Array) {
    this.#path = path;
    this.#key = Buffer.from(hkdfSync('sha256', machineKey, '', 'machine-state', 32));
  }

  read(): Buffer | undefined {
    if (!existsSync(this.#path)) return undefined;
    const text = readFileSync(this.#path);
    const decipher = createDecipheriv('aes-256-gcm', this.#key, text.subarray(0, IV_BYTES), { authTagLength: TAG_BYTES });
    decipher.setAuthTag(text.subarray(IV_BYTES, IV_BYTES + TAG_BYTES));
    return Buffer.concat([decipher.update(text.subarray(IV_BYTES + TAG_BYTES)), decipher.final()]);
  }

  write(state: Uint8Array): void {
    const iv = randomBytes(IV_BYTES);
    const cipher = createCipheriv('aes-256-gcm', this.#key, iv, { authTagLength: TAG_BYTES });
    const text = Buffer.concat([cipher.update(state), cipher.final()]);
    writeFileSync(`${this.#path}.new`, Buffer.concat([iv, cipher.getAuthTag(), text]), { mode: 0o600 });
    renameSync(`${this.#path}.new`, this.#path);
  }
}
