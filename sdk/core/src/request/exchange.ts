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

/** What a node door is given: who asks has passed the gate, the rate and the limits of its route. */
export interface NodeExchange {
  /** Its body has been read: it is in `body`. */
  readonly req: IncomingMessage;
  /** At most as many bytes as the route's `limit`; none where nothing came. */
  readonly body: Buffer;
  readonly caller: Caller | undefined;
  readonly res: ServerResponse;
  readonly hostname: string;
  readonly ip: string;
  readonly correlationId: string;
  /** The verified client certificate of the connection, never a header. */
  readonly peer: { readonly workload: string; readonly thumbprint: string; readonly pem: string } | undefined;
}
/** What a raw door is given: who asks has passed the gate and the rate of its route. */
export interface RawExchange {
  readonly params: Readonly<Record<string, string>>;
  /** Its body ends with the problem `body_too_large` or `body_timeout` where more comes than the route's `limit`, or too slowly. */
  readonly request: globalThis.Request;
  /**
   * The body as a request door reads it: JSON, without U+0000; nothing at all is `undefined`. `of: 'any'` takes it whatever its media type
   * says.
   */
  json(options?: { readonly of?: 'any' }): Promise<unknown>;
  /**
   * The answer that the kernel gives to what was thrown: in the service's name and the route's form, logged and counted, and without a word
   * of what nobody declared. For a door that has to add to it; all others throw.
   */
  refusal(thrown: unknown): Response;
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
