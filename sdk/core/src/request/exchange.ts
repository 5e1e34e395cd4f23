import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Caller } from './caller.ts';
import type { Request } from './request.ts';

/** A WebSocket. Until `accept`, a thrown problem is answered over HTTP and nothing is upgraded. */
export interface Connection<In = unknown, Out = unknown> {
  accept(): void;
  readonly messages: AsyncIterable<In>;
  send(message: Out): void;
  close(code: number, reason?: string): void;
  readonly closed: Promise<void>;
  readonly bufferedBytes: number;
}

export interface NodeExchange {
  readonly req: IncomingMessage;
  readonly res: ServerResponse;
  readonly hostname: string;
  readonly ip: string;
  readonly correlationId: string;
  /** The verified client certificate of the connection, never a header. */
  readonly peer: { readonly workload: string; readonly thumbprint: string; readonly pem: string } | undefined;
}
export interface RawExchange {
  readonly params: Readonly<Record<string, string>>;
  readonly request: globalThis.Request;
  readonly hostname: string;
  readonly ip: string;
  readonly correlationId: string;
  readonly tenant: { readonly envId?: string; readonly appInstanceId?: string; readonly service?: string };
  readonly caller: Caller | undefined;
  /** The verified client certificate of the connection, never a header; on public routes too. */
  readonly peer: Request['peer'];
  /** `target_env_id` of the query or the gateway's header, already authorised (G-K-11). */
  readonly targetEnvId: string | undefined;
  /** The environment the exchange is about, as the route's `env` says. */
  readonly env: string | undefined;
  /** Whether the caller may do more than the gate asked for: with this very token, in the environment of this request. */
  readonly permits: (action: string) => Promise<boolean>;
  /**
   * Does `work` once for the `Idempotency-Key` of a POST, as the route's `idempotency` says, and gives the first answer again; without a
   * key it is simply done. `asked` is the body as it was read: under one key it is always the same. A refusal is not kept.
   */
  readonly once: (asked: unknown, work: () => Promise<Response>) => Promise<Response>;
}
