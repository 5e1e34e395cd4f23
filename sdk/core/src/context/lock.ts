export interface LockOptions {
  /** How long it outlives a holder that died; it is renewed while the work runs. Such as `10s`, at least `1s`. */
  readonly ttl: string;
  /** How long to wait for the holder, such as `30s`; not at all when absent. */
  readonly wait?: string;
}

/** Whether the work was done under the lock, and what it came to. */
export type Locked<T> = { readonly held: true; readonly value: T } | { readonly held: false };

/**
 * Does `work` while no other process of the service, and nothing else in this one, does work under the same name. Its signal ends when the
 * lock is lost: to a store that forgot it, or to a pause longer than its time. Work whose effect must never happen twice asks its database
 * as well.
 */
export type Lock = <T>(name: string, options: LockOptions, work: (signal: AbortSignal) => Promise<T>) => Promise<Locked<T>>;
