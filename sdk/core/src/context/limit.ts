interface Named {
  /** Names the limit in keys and answers: `login`. */
  readonly name: string;
}
/** So many in a window, which begins with the first that is counted. */
export interface WindowOptions extends Named {
  readonly max: number;
  readonly seconds: number;
}
/** A bucket that begins full: `burst` at once, and then as many as come back. */
export interface BucketOptions extends Named {
  readonly perSecond: number;
  readonly burst: number;
}

/** Counted in the key-value store, for all processes of the service together. */
export type LimitOptions = (WindowOptions | BucketOptions) & {
  readonly counts?: 'service';
  /**
   * What becomes of everybody while the store is away. `admit`, when absent: availability is the store's matter, not the limit's. `refuse`:
   * the refusal of the store is thrown, and nobody guesses uncounted.
   */
  readonly whenAway?: 'admit' | 'refuse';
};
/** Counted in the memory of one process, for what is asked too often to ask a store; each process allows as much. */
export type ProcessLimitOptions = (WindowOptions | BucketOptions) & {
  readonly counts: 'process';
  /** How many keys are kept; the one used longest ago goes first. 100,000 when absent. */
  readonly keys?: number;
};

/** What became of one attempt. */
export interface Counted {
  readonly allowed: boolean;
  readonly left: number;
  /** Until the window ends, or the bucket has one again. */
  readonly retryAfterSeconds: number;
  /** `Retry-After`, `RateLimit` and `RateLimit-Policy`, for the refusal (G-K-19). */
  readonly headers: Readonly<Record<string, string>>;
}

/** Counts what somebody does, and says when it is too much. */
export interface Limit {
  /**
   * Counts `cost` for `key`, such as an address; a cost of 0 only looks. In a window what is refused counts too, and of a bucket it takes
   * nothing.
   */
  take(key: string, cost?: number): Promise<Counted>;
  /** The same; throws 429 `rate_limited` with the headers when it is too much. */
  require(key: string, cost?: number): Promise<void>;
  /** Takes of `most` what there is room for, and answers how much that is. */
  takeUpTo(key: string, most: number): Promise<number>;
}
/** The same without waiting for anybody. */
export interface ProcessLimit {
  /** `allowed`: of a bucket, what this key has instead of what all have. */
  take(key: string, cost?: number, allowed?: Omit<BucketOptions, 'name'>): Counted;
  /** How many keys it keeps. */
  readonly size: number;
  /** How much it has refused since it was made. */
  readonly refused: number;
}
