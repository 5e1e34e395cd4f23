import type { Static, TObject, TProperties, TSchema } from 'typebox';
import type { AnyContract } from '../contract/contract.ts';
import type { AnyRoute, PathParams } from '../contract/route.ts';
import type { ParamsOf, ReturnOf } from './request.ts';

/** Input of a typed call: path parameters, query and body, whichever the route has. */
export type CallInput<R extends AnyRoute> = (unknown extends PathParams<R['path']> ? unknown : { params: ParamsOf<R> }) &
  (R['options'] extends { query: infer Q extends TProperties }
    ? {} extends Static<TObject<Q>>
      ? { query?: Static<TObject<Q>> }
      : { query: Static<TObject<Q>> }
    : unknown) &
  (R['options'] extends { body: infer S extends TSchema } ? { body: Static<S> } : unknown) & {
    /** Sent as `X-Platform-Target-Env-Id`. */
    targetEnvId?: string;
    idempotencyKey?: string;
    signal?: AbortSignal;
  };

/** A typed client of one service. A declared problem of the other side is thrown again on this side. */
export type Client<C extends AnyContract> = {
  readonly [K in keyof C['routes'] as C['routes'][K] extends { door: 'request' } ? K : never]: (
    ...input: {} extends CallInput<C['routes'][K]> ? [CallInput<C['routes'][K]>?] : [CallInput<C['routes'][K]>]
  ) => Promise<ReturnOf<C['routes'][K]['options']>>;
};
