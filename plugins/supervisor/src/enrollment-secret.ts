import { createCipheriv, createDecipheriv, hkdfSync, randomBytes } from 'node:crypto';
import { chmodSync, existsSync, mkdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';

const LIFETIME_MS = 24 * 3_600_000;
const RESEAL_MS = 20 * 3_600_000;
const SECRET_BYTES = 32;
const IV_BYTES = 12;
const TAG_BYTES = 16;

interface Sealed {
  readonly iv: string;
  readonly ct: string;
  readonly tag: string;
  readonly sealed_at: number;
}

/**
 * The machine's secret of its first boot (SUP-061): 32 random bytes, sealed with AES-256-GCM in a file that only its owner reads. It is sealed anew
 * before its life is over and never changes (SUP-062); an orderly shutdown takes it away (SUP-063).
 */
export class EnrollmentSecret {
  readonly #path: string;
  readonly #key: Buffer;
  readonly #now: () => number;
  #secret: Buffer;
  #sealedAt: number;

  constructor(dataDir: string, now: () => number) {
    this.#path = join(dataDir, 'captain', 'enrollment.sealed');
    this.#now = now;
    mkdirSync(dirname(this.#path), { recursive: true, mode: 0o700 });
    this.#key = Buffer.from(hkdfSync('sha256', machineKey(dataDir), '', 'enrollment', 32));
    const found = this.#open();
    this.#secret = found?.secret ?? randomBytes(SECRET_BYTES);
    this.#sealedAt = found?.sealedAt ?? Number.NEGATIVE_INFINITY;
    this.refresh();
  }

  get value(): Uint8Array {
    return this.#secret;
  }

  /** Seals it anew when twenty of its twenty-four hours are over. */
  refresh(): void {
    const now = this.#now();
    if (now - this.#sealedAt < RESEAL_MS) return;
    const iv = randomBytes(IV_BYTES);
    const cipher = createCipheriv('aes-256-gcm', this.#key, iv, { authTagLength: TAG_BYTES }).setAAD(Buffer.from(String(now)));
    const ct = Buffer.concat([cipher.update(this.#secret), cipher.final()]);
    const sealed: Sealed = { iv: iv.toString('base64'), ct: ct.toString('base64'), tag: cipher.getAuthTag().toString('base64'), sealed_at: now };
    writeFileSync(`${this.#path}.new`, JSON.stringify(sealed), { mode: 0o600 });
    chmodSync(`${this.#path}.new`, 0o600);
    renameSync(`${this.#path}.new`, this.#path);
    this.#sealedAt = now;
  }

  clear(): void {
    rmSync(this.#path, { force: true });
    this.#secret.fill(0);
  }

  /** What was sealed last, unless its life is over or it was changed. */
  #open(): { secret: Buffer; sealedAt: number } | undefined {
    if (!existsSync(this.#path)) return undefined;
    try {
      const { iv, ct, tag, sealed_at } = JSON.parse(readFileSync(this.#path, 'utf8')) as Sealed;
      if (this.#now() - sealed_at >= LIFETIME_MS) return undefined;
      const decipher = createDecipheriv('aes-256-gcm', this.#key, Buffer.from(iv, 'base64'), { authTagLength: TAG_BYTES }).setAAD(Buffer.from(String(sealed_at)));
      decipher.setAuthTag(Buffer.from(tag, 'base64'));
      const secret = Buffer.concat([decipher.update(Buffer.from(ct, 'base64')), decipher.final()]);
      return secret.length === SECRET_BYTES ? { secret, sealedAt: sealed_at } : undefined;
    } catch {
      return undefined;
    }
  }
}

/** A key of this machine, made once. */
export function machineKey(dataDir: string): Buffer {
  const path = join(dataDir, 'captain', 'machine.key');
  mkdirSync(dirname(path), { recursive: true, mode: 0o700 });
  if (!existsSync(path)) writeFileSync(path, randomBytes(32), { mode: 0o600, flag: 'wx' });
  return readFileSync(path);
}
