export interface StreamItem {
  readonly id?: string;
  readonly event?: string;
  readonly data: unknown;
}

/** One delivered event. `id` is its idempotency key: the kernel has already refused a second copy. */
export interface Delivery<P> {
  readonly id: string;
  readonly event: string;
  readonly envId: string;
  readonly payload: P;
  readonly attempt: number;
  readonly correlationId: string;
}
