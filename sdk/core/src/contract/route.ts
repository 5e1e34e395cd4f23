import type { TProperties, TSchema } from 'typebox';
import type { Gate } from './action.ts';
import type { ErrorForm } from '../error-form.ts';

export type Method = 'GET' | 'POST' | 'PUT' | 'DELETE' | 'ANY';
export type RouteEnv = 'own' | 'target' | 'any';
export type Door = 'request' | 'stream' | 'upload' | 'socket' | 'raw' | 'node' | 'listener';

/** How often a route may be asked. Who asks more is answered 429 `rate_limited` with `Retry-After`, before anything is read (G-K-19). */
export interface RouteRate {
  /** How many in one window, over all processes of the service together. */
  readonly max: number;
  /** Length of a window; it begins with the first that is counted. */
  readonly seconds: number;
  /** Whom it counts: each `address` (of IPv6 each /64), or each `caller`, which a public route has none of. `address` when absent. */
  readonly by?: 'address' | 'caller';
}

export type Idempotency = 'kernel' | 'own' | 'secret' | { readonly none: string };

/** What a request door declares. Objects in `query` and `body` refuse unknown members unless they open themselves. */
export interface RouteOptions {
  readonly summary: string;
  readonly gate: Gate;
  /** A schema for each parameter of the path, all of them text; what does not fit is 400 with the pointer `/params/{name}`. */
  readonly params?: TProperties;
  /** Members of the query string; numbers and booleans are read from their text. */
  readonly query?: TProperties;
  readonly body?: TSchema;
  readonly returns?: TSchema;
  readonly problems?: readonly string[];
  readonly emits?: readonly string[];
  /** Status of a success: 200 with a value, 204 without, unless said otherwise. */
  readonly status?: number;
  /**
   * Largest body in bytes; 1 MiB when absent (G-K-22). It holds at every door: more is 413 `body_too_large`, in the route's own form of
   * error.
   */
  readonly limit?: number;
  /**
   * How long the whole body may take to come, such as `10m`; `2m` when absent. Nothing may come for 30 s at most. Slower is 408
   * `body_timeout`.
   */
  readonly within?: string;
  /** Declared problems that take the place of `body_too_large` and `body_timeout`, where the document of the API names its own. */
  readonly bodyProblems?: { readonly tooLarge?: string; readonly tooSlow?: string };
  /** How often it may be asked; as often as anybody likes when absent. For what one declaration cannot say there is `ctx.limit`. */
  readonly rate?: RouteRate;
  /**
   * Which environment a request is about (G-K-11); `request.env` is its id. `own`: the one of `target_env_id`, else the token's. `target`:
   * the one of `target_env_id` alone. Without one both answer 400 `target_env_required`; a mutation in a suspended or archived one is 409.
   * `any`: none; the handler says itself what it is about. The contract's `env` when absent.
   */
  readonly env?: RouteEnv;
  /**
   * How `Idempotency-Key` is honoured on a POST (G-K-03). `kernel`: the first answer comes again, which is so on a POST behind a gate that
   * says nothing. `secret`: once, without keeping the answer, which shows a secret. `own`: by the handler itself. `none`: why nothing is
   * kept. A public POST and every raw or node door say which. A raw one of `kernel` or `secret` calls `exchange.once` behind its checks;
   * who is not known by a gate is known again by what he shows.
   */
  readonly idempotency?: Idempotency;
  /**
   * The handler compares `request.ifMatch` by `ctx.requireVersion`, under the lock of the record (G-K-03). A change without it answers
   * `If-Match` with 412 `precondition_unsupported`, so that no condition is passed over.
   */
  readonly ifMatch?: true;
  /**
   * Offered to operators as the action `{service}:{route}` of the gateway (doc2, Browser gateway; G-BFF-06). The gate must name one action.
   */
  readonly dispatch?: boolean;
  /**
   * Of a listener: the members of the service's configuration that hold its port and its address. Its instances share the socket, one after
   * the other.
   */
  readonly port?: string;
  readonly address?: string;
  /**
   * Its answer waits until something happens, as a long poll does, or goes on like a stream: it is counted, and its time is none of those
   * that the statistics show (G-STAT-04). So is every stream and socket.
   */
  readonly waits?: true;
  /** Served, but left out of `/openapi.json`. */
  readonly hidden?: boolean;
  /** How a raw or node door refuses, where the standard of its API fixes the body; RFC 9457 when absent (G-K-01). */
  readonly errors?: ErrorForm;
}

export interface RouteDef<M extends Method = Method, P extends string = string, O extends RouteOptions = RouteOptions> {
  readonly door: Door;
  readonly method: M;
  readonly path: P;
  readonly options: O;
}
export type AnyRoute = RouteDef;

type Made<M extends Method, D extends Door> = <const P extends string, const O extends RouteOptions>(
  path: P,
  options: O,
) => RouteDef<M, P, O> & { readonly door: D };

const door =
  <M extends Method, D extends Door>(method: M, kind: D): Made<M, D> =>
  (path, options) => ({ door: kind, method, path, options });

export const get = door('GET', 'request');
export const post = door('POST', 'request');
export const put = door('PUT', 'request');
export const del = door('DELETE', 'request');
/** Server-sent events: the handler is an async generator; heartbeat, back-pressure and abort are the kernel's. */
export const stream = door('GET', 'stream');
/**
 * A PUT of bytes: the handler is a request's in all but its `body`, which is a stream of at most `limit` bytes (that the route must name).
 * It ends with a thrown problem when too much comes, or too slowly: what was written down so far is to be forgotten then. Between services
 * an upload has a connection apart from ordinary requests, which wait for none.
 */
export const upload = door('PUT', 'upload') as <const P extends string, const O extends RouteOptions & { readonly limit: number }>(
  path: P,
  options: O,
) => RouteDef<'PUT', P, O> & { readonly door: 'upload' };
/** A WebSocket at `path`. */
export const socket = door('GET', 'socket');
/** Web `Request` in, `Response` out, streaming both ways; the body is held to `limit` and `within` as it is read. Platform plugins only. */
export const raw = door('ANY', 'raw');
/** Node's own request and response (oidc-provider needs them), the body read before them. Platform plugins only. */
export const node = door('ANY', 'node');
/** A TCP listener named by `path`. Platform plugins only. */
export const listener = door('ANY', 'listener');

/** Names between braces in a path; `{*rest}` takes the remainder. */
export type PathParams<P extends string> = P extends `${string}{${infer Name}}${infer Rest}`
  ? { readonly [K in Name extends `*${infer Tail}` ? Tail : Name]: string } & PathParams<Rest>
  : unknown;
