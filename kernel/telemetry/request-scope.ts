import { AsyncLocalStorage } from 'node:async_hooks';

/** What every log line, event and outbound call of one request carries. */
export interface RequestScope {
  readonly correlationId: string;
  readonly service: string;
  envId?: string | undefined;
  subject?: string | undefined;
}

const storage = new AsyncLocalStorage<RequestScope>();

/** Runs `work` inside a scope; everything awaited by it sees the same one. */
export const inScope = <T>(scope: RequestScope, work: () => T): T => storage.run(scope, work);
export const currentScope = (): RequestScope | undefined => storage.getStore();
