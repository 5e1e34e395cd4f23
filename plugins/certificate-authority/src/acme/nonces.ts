import { BoundedMap } from '@platform/sdk';
import { randomBytes } from 'node:crypto';

const LIFE_MS = 3_600_000;
const LIMIT = 100_000;

/** Replay nonces: single use, in memory, one hour, at most a hundred thousand of which the oldest goes first (CA-062, G-ACME-04). */
export class Nonces {
  readonly #made = new BoundedMap<string, number>(LIMIT);
  readonly #now: () => number;

  constructor(now: () => number) {
    this.#now = now;
  }

  get size(): number {
    return this.#made.size;
  }

  make(): string {
    const nonce = randomBytes(18).toString('base64url');
    this.#made.set(nonce, this.#now());
    return nonce;
  }

  /** Whether it was ours, is not too old and was not used before. */
  use(nonce: string): boolean {
    const at = this.#made.get(nonce);
    this.#made.delete(nonce);
    return at !== undefined && this.#now() - at <= LIFE_MS;
  }
}
