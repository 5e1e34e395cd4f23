import type { Cache, CacheOptions } from '@platform/sdk';
import { LRUCache } from 'lru-cache';

interface Kept<V> {
  readonly value: V;
  readonly at: number;
}

/** The one cache of the platform: bounded, by time, one question at a time for a key. Time is the clock's, so that a test can move it. */
export class TimedCache<V> implements Cache<V> {
  readonly #options: CacheOptions<V>;
  readonly #now: () => number;
  readonly #kept: LRUCache<string, Kept<V>>;
  readonly #asking = new Map<string, Promise<V>>();

  constructor(options: CacheOptions<V>, now: () => number) {
    this.#options = options;
    this.#now = now;
    this.#kept = new LRUCache({ max: options.max });
  }

  async get(key: string, load: () => Promise<V>): Promise<V> {
    const kept = this.#kept.get(key);
    const age = kept ? this.#now() - kept.at : 0;
    if (kept && age < this.#ttl(kept.value)) return kept.value;
    try {
      return await (this.#asking.get(key) ?? this.#ask(key, load));
    } catch (error) {
      const { stale } = this.#options;
      if (kept?.value !== undefined && stale && age < stale.ms && (stale.on?.(error) ?? true)) return kept.value;
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

  #ask(key: string, load: () => Promise<V>): Promise<V> {
    const asking = load()
      .then(value => {
        if (this.#asking.get(key) === asking && this.#ttl(value) > 0) this.#kept.set(key, { value, at: this.#now() });
        return value;
      })
      .finally(() => this.#asking.get(key) === asking && this.#asking.delete(key));
    this.#asking.set(key, asking);
    return asking;
  }

  #ttl(value: V): number {
    const { ttl } = this.#options;
    return typeof ttl === 'number' ? ttl : ttl(value);
  }
}
