import { BoundedMap } from '@platform/sdk';
const OPEN_MS = 30_000;
const AFTER = 2;
const MOST = 5_000;

interface Known {
  failures: number;
  openUntil: number;
  trying: boolean;
}

/** Providers that did not answer are asked by one try at a time for a while, so that nobody waits for them (H-26). */
export class Breaker {
  readonly #known = new BoundedMap<string, Known>(MOST);
  readonly #now: () => number;

  constructor(now: () => number) {
    this.#now = now;
  }

  /** Whether a provider may be asked; who may, tells how it ended. */
  admits(id: string): boolean {
    const known = this.#known.get(id);
    if (!known || known.failures < AFTER) return true;
    if (known.trying || known.openUntil > this.#now()) return false;
    known.trying = true;
    return true;
  }

  answered(id: string): void {
    this.#known.delete(id);
  }

  silent(id: string): void {
    const failures = (this.#known.get(id)?.failures ?? 0) + 1;
    this.#known.set(id, { failures, openUntil: this.#now() + OPEN_MS, trying: false });
  }
}
