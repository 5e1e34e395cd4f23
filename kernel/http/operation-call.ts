import type { Request } from '@platform/sdk';
import type { Identity } from '../identity/tokens/verifier.ts';

export interface Incoming {
  readonly params: Readonly<Record<string, string>>;
  readonly query: URLSearchParams | Readonly<Record<string, unknown>>;
  readonly headers: Readonly<Record<string, string | undefined>>;
  readonly identity: () => Promise<Identity>;
  readonly body: (limit: number) => Promise<unknown>;
  readonly correlationId: string;
  /** Made when first asked for: most handlers never do. */
  readonly signal: () => AbortSignal;
  readonly ip: string;
  readonly hostname: string;
  readonly tenant: Request['tenant'];
  readonly peer: Request['peer'];
  /** The verb, where the route takes any. */
  readonly method?: string;
}
export interface Outgoing {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  readonly value: unknown;
}
