import type { Readable } from 'node:stream';
import type { Static, TObject, TProperties, TSchema } from 'typebox';
import type { AnyContract } from '../contract/contract.ts';
import type { AnyRoute, PathParams } from '../contract/route.ts';
import type { Caller, MachineCaller, UserCaller } from './caller.ts';
import type { Reply } from './reply.ts';

type ActionOf<C extends AnyContract, G> = G extends string
  ? C['actions'][G]
  : G extends { any: readonly (infer A)[] }
    ? C['actions'][A & string]
    : never;
type CallerOf<C extends AnyContract, G> = G extends { public: string }
  ? undefined
  : G extends { signedIn: string }
    ? UserCaller
    : ActionOf<C, G> extends { principals: readonly (infer P)[] }
      ? [P] extends ['machine']
        ? MachineCaller
        : [P] extends ['user' | 'delegated']
          ? UserCaller
          : Caller
      : Caller;

type EnvOf<C extends AnyContract, O> = O extends { env: infer E }
  ? E extends 'any'
    ? undefined
    : string
  : C['base'] extends { env: infer B }
    ? B extends 'any'
      ? undefined
      : string
    : C['base'] extends { vertical: string }
      ? O extends { gate: { public: string } }
        ? undefined
        : string
      : undefined;
/** Parameters of a path: as its schemas say, or any text. */
export type ParamsOf<R extends AnyRoute> = R['options'] extends { params: infer S extends TProperties }
  ? Static<TObject<S>>
  : PathParams<R['path']>;
export type BodyOf<O> = O extends { body: infer S extends TSchema } ? Static<S> : undefined;
export type QueryOf<O> = O extends { query: infer Q extends TProperties } ? Static<TObject<Q>> : Readonly<Record<string, never>>;
export type ReturnOf<O> = O extends { returns: infer S extends TSchema } ? Static<S> : void;

/** What a handler receives. */
export interface Request<P = unknown, Q = unknown, B = unknown, K = Caller | undefined, E = string | undefined> {
  readonly params: P;
  readonly query: Q;
  readonly body: B;
  readonly caller: K;
  readonly headers: Readonly<Record<string, string | undefined>>;
  /** `target_env_id` of the query or the gateway's header, already authorised (G-K-11). */
  readonly targetEnvId: string | undefined;
  /** The environment the request is about, as the route's `env` says; none where that is `any`. */
  readonly env: E;
  /** What `If-Match` names: versions, of which `ctx.requireVersion` wants one. None when it was not sent, or takes any. */
  readonly ifMatch: readonly number[] | undefined;
  readonly correlationId: string;
  /** Aborts when the client goes or the service stops. Made when first read, so a spread of a request leaves it out. */
  readonly signal: AbortSignal;
  /** Address of the peer, or of the client when the ingress says so. */
  readonly ip: string;
  /** Host the caller asked for: the ingress's word where the peer is the ingress, `Host` otherwise. */
  readonly hostname: string;
  /** What the ingress injected; empty for every other peer. */
  readonly tenant: { readonly envId?: string; readonly appInstanceId?: string; readonly service?: string };
  /** The verified client certificate of the connection, or the calling workload in process; on public routes too. */
  readonly peer: { readonly workload: string; readonly thumbprint: string } | undefined;
}
/** The request of a named route. */
export type RequestOf<C extends AnyContract, R extends keyof C['routes']> = Request<
  ParamsOf<C['routes'][R]>,
  QueryOf<C['routes'][R]['options']>,
  BodyOf<C['routes'][R]['options']>,
  CallerOf<C, C['routes'][R]['options']['gate']>,
  EnvOf<C, C['routes'][R]['options']>
>;

/** The request of an upload: its body comes as it is read, at most the route's `limit` of it. */
export type UploadOf<C extends AnyContract, R extends keyof C['routes']> = Omit<RequestOf<C, R>, 'body'> & { readonly body: Readable };

export type HandlerResult<O> = Promise<ReturnOf<O> | Reply<ReturnOf<O>>>;
