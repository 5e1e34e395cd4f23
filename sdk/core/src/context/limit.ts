export interface LimitOptions {
  /** Names the limit in keys and answers: `login`. */
  readonly name: string;
  /** How many in one window, over all processes of the service together. */
  readonly max: number;
  /** Length of a window; it begins with the first that is counted. */
  readonly seconds: number;
}

/** What became of one attempt. */
export interface Counted {
  readonly allowed: boolean;
  readonly left: number;
  /** Until the window ends. */
  readonly retryAfterSeconds: number;
  /** `Retry-After`, `RateLimit` and `RateLimit-Policy`, for the refusal (G-K-19). */
  readonly headers: Readonly<Record<string, string>>;
}

/** Counts what somebody does, and says when it is too much. */
export interface Limit {
  /**
   * Counts `cost` for `key`, such as an address; what is refused counts too. A store that is away lets everybody through: availability is
   * the store's matter, not the limit's.
   */
  take(key: string, cost?: number): Promise<Counted>;
}
