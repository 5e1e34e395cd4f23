/**
 * A map of so many entries at most: one more lets the one go that was set longest ago. It is for what can be asked for, or made, again;
 * answers that have an age belong into `ctx.cache`.
 */
export class BoundedMap<K, V> extends Map<K, V> {
  readonly #most: number;

  constructor(most: number) {
    super();
    this.#most = most;
  }

  /** An entry that is set again is the newest one. */
  override set(key: K, value: V): this {
    this.delete(key);
    super.set(key, value);
    if (this.size > this.#most) this.delete(this.keys().next().value as K);
    return this;
  }
}
