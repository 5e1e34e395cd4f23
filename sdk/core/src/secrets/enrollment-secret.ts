import { randomBytes } from 'node:crypto';
import { join } from 'node:path';
import { SealedFile } from './sealed-file.ts';

const LIFETIME_MS = 24 * 3_600_000;
const RESEAL_MS = 20 * 3_600_000;
const SECRET_BYTES = 32;

const fileOf = (dataDir: string): SealedFile =>
  new SealedFile(join(dataDir, 'captain', 'enrollment.sealed'), { dataDir, use: 'enrollment' });

/**
 * The secret that the supervisor of this machine sealed, while it lives: nothing when there is none, its life is over or it was changed.
 */
export function sealedEnrollment(dataDir: string, now: number): { readonly secret: Buffer; readonly sealedAt: number } | undefined {
  try {
    const found = fileOf(dataDir).read();
    return found && now - found.sealedAt < LIFETIME_MS && found.content.length === SECRET_BYTES
      ? { secret: found.content, sealedAt: found.sealedAt }
      : undefined;
  } catch {
    // Changed, cut short, or of another machine: it admits nobody.
    return undefined;
  }
}

/**
 * The machine's secret of its first boot (SUP-061): 32 random bytes in a sealed file. It is sealed anew before its life is over and never
 * changes (SUP-062); an orderly shutdown takes it away (SUP-063).
 */
export class EnrollmentSecret {
  readonly #file: SealedFile;
  readonly #now: () => number;
  #secret: Buffer;
  #sealedAt: number;

  constructor(dataDir: string, now: () => number) {
    this.#file = fileOf(dataDir);
    this.#now = now;
    const found = sealedEnrollment(dataDir, now());
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
    this.#file.write(this.#secret, now);
    this.#sealedAt = now;
  }

  clear(): void {
    this.#file.remove();
    this.#secret.fill(0);
  }
}
