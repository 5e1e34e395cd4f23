import { hash, verify } from '@node-rs/argon2';
import { isLeaked } from './leaked-passwords.ts';

/** G-AUTH-08 and facts/identity 4: argon2id, 19 MiB, two passes. */
const COST = { algorithm: 2 /* argon2id */, memoryCost: 19_456, timeCost: 2, parallelism: 1 } as const;
const VERSION = 19;
const LENGTH = { least: 12, most: 128 };
const AT_ONCE = 4;
const MAX_WAITING = 200;

/** Thrown when more people sign in at once than the machine can hash for. */
export class HashingBusy extends Error {}

/** Password hashing behind a gate, so that a flood of sign-ins cannot take all memory and CPU. */
export class Passwords {
  readonly #waiting: (() => void)[] = [];
  #running = 0;
  #decoy: Promise<string> | undefined;

  hash(password: string): Promise<string> {
    return this.#gated(() => hash(password, COST));
  }

  /** A hash that nobody waits for: nothing while those who sign in have every place. */
  async hashAside(password: string): Promise<string | undefined> {
    return this.#running < AT_ONCE ? this.hash(password) : undefined;
  }

  /**
   * Whether a stored hash costs less to guess than one made today, and nothing at which it costs more would be given up. One that a newer
   * build made, or that cannot be read, stays as it is.
   */
  isCheap(stored: string): boolean {
    const [, kind, version, memory, time] = /^\$(argon2(?:id|i|d))(?:\$v=(\d+))?\$m=(\d+),t=(\d+),p=\d+\$/.exec(stored) ?? [];
    if (kind === undefined) return false;
    const [by, m, t] = [Number(version ?? 16), Number(memory), Number(time)];
    if (by > VERSION || m > COST.memoryCost || t > COST.timeCost) return false;
    return kind !== 'argon2id' || by < VERSION || m < COST.memoryCost || t < COST.timeCost;
  }

  /** Takes as long for somebody who does not exist. */
  async verify(stored: string | null | undefined, password: string): Promise<boolean> {
    this.#decoy ??= hash('nobody has this password', COST);
    const against = stored ?? (await this.#decoy);
    const matches = await this.#gated(() => verify(against, password));
    return matches && stored !== null && stored !== undefined;
  }

  /** Why a password is refused, in words for its owner; `undefined` when it will do. */
  weakness(password: string, email: string): string | undefined {
    if (password.length < LENGTH.least) return `Use at least ${LENGTH.least} characters.`;
    if (password.length > LENGTH.most) return `Use at most ${LENGTH.most} characters.`;
    const plain = password.toLowerCase();
    const local = email.toLowerCase().split('@')[0] as string;
    if (local.length >= 4 && plain.includes(local)) return 'Do not use your e-mail address in it.';
    if (new Set(plain).size < 5) return 'Use more different characters.';
    if (isLeaked(password)) return 'This password is among those that are guessed first.';
    return undefined;
  }

  async #gated<T>(work: () => Promise<T>): Promise<T> {
    if (this.#running >= AT_ONCE) {
      if (this.#waiting.length >= MAX_WAITING) throw new HashingBusy();
      await new Promise<void>(resolve => this.#waiting.push(resolve));
    } else this.#running += 1;
    try {
      return await work();
    } finally {
      const next = this.#waiting.shift();
      if (next) next();
      else this.#running -= 1;
    }
  }
}
