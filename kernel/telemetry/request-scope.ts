import { AsyncLocalStorage } from 'node:async_hooks';

/** What every log line, event and outbound call of one request carries. */
export interface RequestScope {
  readonly correlationId: string;
  readonly service: string;
  envId?: string | undefined;
  subject?: string | undefined;
  /** The key that the request came under, when it is one that must not take effect twice (G-K-03). */
  keyed?: KeyedRequest | undefined;
  /** Whether it has written to the audit trail. */
  audited?: boolean;
}

/** A caller's `Idempotency-Key`; `marked` once a transaction of the request has committed with it. */
export interface KeyedRequest {
  readonly caller: string;
  readonly key: string;
  marked: boolean;
}

const storage = new AsyncLocalStorage<RequestScope>();

/** Runs `work` inside a scope; everything awaited by it sees the same one. */
export const inScope = <T>(scope: RequestScope, work: () => T): T => storage.run(scope, work);
export const currentScope = (): RequestScope | undefined => storage.getStore();
