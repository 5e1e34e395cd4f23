/** How long answers of somebody else are kept. */
export interface CacheOptions<V> {
  /** As many as this; the ones that were used longest ago go first. */
  readonly max: number;
  /** Milliseconds for which an answer is taken as it is; by the answer where they differ. One of 0 is not kept. */
  readonly ttl: number | ((value: V) => number);
  /**
   * An older answer, unless it is `undefined`, stands in for so many milliseconds after it was given, where asking again fails with an
   * error like this.
   */
  readonly stale?: { readonly ms: number; readonly on?: (error: unknown) => boolean };
}

/**
 * Answers that are asked for again and again. Whoever asks while somebody asks gets the same answer. What is forgotten while it is on its
 * way is given to those who wait for it, and not kept.
 */
export interface Cache<V> {
  /**
   * With a version, what is kept under another one is no answer, and whoever asks under another one asks anew: the state a service keeps in
   * its key-value store moves it with each change.
   */
  get(key: string, load: () => Promise<V>, version?: string): Promise<V>;
  /** What was last known, however old. */
  peek(key: string): V | undefined;
  values(): V[];
  /** One key, those for which it holds, or everything; with the latter two also all that is on its way. */
  forget(which?: string | ((key: string, value: V) => boolean)): void;
}
