import type { Cache, CacheOptions } from '@platform/sdk';
import { LRUCache } from 'lru-cache';

interface Kept<V> {
  readonly value: V;
  readonly version: string | undefined;
  readonly at: number;
  readonly until: number;
}
interface Asking<V> {
  readonly answer: Promise<V>;
  readonly version: string | undefined;
}

/** The one cache of the platform: bounded, by time, one question at a time for a key. Time is the clock's, so that a test can move it. */
export class TimedCache<V> implements Cache<V> {
  readonly #options: CacheOptions<V>;
  readonly #now: () => number;
  readonly #kept: LRUCache<string, Kept<V>>;
  readonly #asking = new Map<string, Asking<V>>();

  constructor(options: CacheOptions<V>, now: () => number) {
    this.#options = options;
    this.#now = now;
    this.#kept = new LRUCache({ max: options.max });
  }

  async get(key: string, load: () => Promise<V>, version?: string): Promise<V> {
    const kept = this.#kept.get(key);
    const now = this.#now();
    if (kept && now < kept.until && sameVersion(kept, version)) return kept.value;
    try {
      const asking = this.#asking.get(key);
      return await (asking && sameVersion(asking, version) ? asking.answer : this.#ask(key, load, version));
    } catch (error) {
      const { stale } = this.#options;
      if (kept?.value !== undefined && stale && now - kept.at < stale.ms && (stale.on?.(error) ?? true)) return kept.value;
      throw error;
    }
  }

  peek(key: string): V | undefined {
    return this.#kept.peek(key)?.value;
  }

  values(): V[] {
    return [...this.#kept.values()].map(({ value }) => value);
  }

  forget(which?: string | ((key: string, value: V) => boolean)): void {
    if (typeof which === 'string') {
      this.#kept.delete(which);
      this.#asking.delete(which);
      return;
    }
    // What is on its way may be of before, whichever it is.
    this.#asking.clear();
    for (const [key, { value }] of [...this.#kept.entries()]) if (which?.(key, value) ?? true) this.#kept.delete(key);
  }

  #ask(key: string, load: () => Promise<V>, version: string | undefined): Promise<V> {
    const answer = load()
      .then(value => {
        const [at, ttl] = [this.#now(), this.#ttl(value)];
        if (this.#asking.get(key)?.answer === answer && ttl > 0) this.#kept.set(key, { value, version, at, until: at + ttl });
        return value;
      })
      .finally(() => this.#asking.get(key)?.answer === answer && this.#asking.delete(key));
    this.#asking.set(key, { answer, version });
    return answer;
  }

  #ttl(value: V): number {
    const { ttl } = this.#options;
    return typeof ttl === 'number' ? ttl : ttl(value);
  }
}

/** Who names no version takes any. */
const sameVersion = (known: { readonly version: string | undefined }, version: string | undefined): boolean =>
  version === undefined || known.version === version;
