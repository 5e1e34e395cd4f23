import type { Request } from '@platform/sdk';
import type { BodyBounds, RequestBody } from './doors/request-body.ts';
import type { Identity } from '../identity/tokens/verifier.ts';

export interface Incoming {
  readonly params: Readonly<Record<string, string>>;
  readonly query: URLSearchParams | Readonly<Record<string, unknown>>;
  readonly headers: Readonly<Record<string, string | undefined>>;
  readonly identity: () => Promise<Identity>;
  /** The body as JSON. */
  readonly body: (bounds: BodyBounds) => Promise<unknown>;
  /** The body as bytes; absent where the call never was on a wire. */
  readonly bytes?: RequestBody;
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
