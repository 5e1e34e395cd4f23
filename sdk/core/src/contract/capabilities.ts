import type { IncomingMessage, ServerResponse } from 'node:http';
import type { OnReadOpts, Socket } from 'node:net';
import type { Duplex, Readable } from 'node:stream';

/** Redis-protocol store for platform services that declare the `key-value` capability. */
export interface KeyValue {
  call(command: string, ...args: readonly (string | number)[]): Promise<unknown>;
  /** One round trip; a failed command is an `Error` in its place. */
  pipeline(commands: readonly (readonly (string | number)[])[]): Promise<unknown[]>;
  /** One hash tag for every server of a cluster, so that a key can be put on each; none where there is one server. */
  shardTags(): readonly string[];
  /** The values of keys, read no earlier than this call. Everything asked for at one moment in the process shares one round trip. */
  current(keys: readonly string[]): Promise<readonly (string | null)[]>;
  subscribe(channel: string, listener: (message: string) => void): Promise<AsyncDisposable>;
  /** A connection of its own, for blocking reads. */
  duplicate(): Promise<KeyValue & AsyncDisposable>;
  /**
   * A connection of its own on which every command is sent once: one that breaks fails what is under way, and repeats nothing afterwards.
   */
  once(): Promise<KeyValue & AsyncDisposable>;
  /** Another number whenever this connection was made anew: what answers then may have lost its memory. */
  epoch(): number;
}

/** AES-256-GCM of a text, with the id of the key it was made with. */
export interface Sealed {
  readonly v: 1;
  readonly kid: string;
  readonly iv: string;
  readonly ct: string;
  readonly tag: string;
}
/** Encryption at rest. `purpose` is authenticated with the text: a box opens only where it was made for. */
export interface SealedBox {
  /** Names the key it seals with; {@link Sealed} carries it. */
  readonly kid: string;
  seal(purpose: string, text: string): Sealed;
  /** The text, or `undefined` when the key is unknown or anything was changed. */
  open(purpose: string, sealed: Sealed): string | undefined;
  /** Whether it was made with an older key. */
  isStale(sealed: Sealed): boolean;
  /** A keyed, purpose-bound fingerprint that reveals nothing of its input. */
  fingerprint(purpose: string, value: string): string;
  /** Whether a fingerprint is of this value, made under the key of now or one before; in the same time whether or not. */
  isFingerprint(purpose: string, value: string, fingerprint: string): boolean;
}

/** Where something sealed lies for long: a column of a table of the service, with the purpose that each row was sealed for. */
export interface SealedPlace {
  readonly table: string;
  /** The primary key, a uuid unless `type` says otherwise. */
  readonly id: string;
  readonly type?: 'uuid' | 'text';
  readonly column: string;
  readonly purpose: (id: string) => string;
}

/** An instance in rotation, and what this process has under way there. */
export interface BackendAddress {
  readonly ip: string;
  readonly port: number;
  readonly status: string;
  readonly last_health_at: string | null;
  /** Epoch milliseconds until which it is passed over; `undefined` where it is not. */
  readonly suspect_until: number | undefined;
  readonly in_flight: number;
  readonly pool_idle: number;
}

/** An HTTP exchange that is passed on; `body` is what was read of the request, or the rest of it as a stream. */
export interface Forwarded {
  readonly req: IncomingMessage;
  readonly res: ServerResponse;
  readonly headers: Record<string, string>;
  readonly body?: Uint8Array | Readable | null;
  readonly party?: string;
  /**
   * Of a request with trailers: what they are, asked for behind the end of its body. `undefined` then leaves the request without an end.
   */
  readonly trailers?: (() => Readonly<Record<string, string>> | undefined) | undefined;
}

/** Streams to other services' internal listeners, for the gateway and the ingress. */
export interface Backends {
  /**
   * Throws the problem `backend_unresolved` or `backend_unreachable` (502), or `no_backend` (503) when no connection came free in time. The
   * body streams.
   */
  fetch(
    service: string,
    path: string,
    init: {
      method: string;
      headers: Record<string, string>;
      body?: BodyInit | null;
      signal?: AbortSignal;
      hostname?: string;
      timeoutMs?: number;
      /** The answer may be held back: it is counted apart from ordinary requests, as streams are. */
      longPoll?: boolean;
      /** Whose call it is, where the caller speaks for many: none of them waits behind all of another. The service itself when absent. */
      party?: string;
      /** One of the contract's `workloads`; the service's own when absent. */
      as?: string;
      /** This very instance, instead of the next one in turn. */
      at?: { readonly ip: string; readonly port: number };
    },
  ): Promise<Response>;
  /** Addresses of Active instances with fresh health. */
  addresses(service: string): Promise<readonly BackendAddress[]>;
  /**
   * A bare connection to the next instance's own listener, half-open allowed, for bytes that nobody reads on the way; the caller owns it.
   * With `onread` what comes from there is read into the caller's own memory.
   */
  dial(service: string, onread?: OnReadOpts): Promise<Socket>;
  /**
   * Forwards an HTTP exchange, byte for byte. Headers are given whole; `body` is what was read of the request, or the rest of it as a
   * stream. `party` is whose it is: what lasts is bounded for each. Resolves when the head of the answer is written.
   */
  forward(service: string, exchange: Forwarded): Promise<void>;
  /** The same for a protocol upgrade; resolves when both sides have ended. */
  upgrade(
    service: string,
    exchange: { req: IncomingMessage; socket: Duplex; head: Buffer; headers: Record<string, string>; party?: string },
  ): Promise<void>;
}
