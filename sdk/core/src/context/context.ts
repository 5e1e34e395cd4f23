import type { Limit, LimitOptions } from './limit.ts';
import type { Manifest } from '../contract/manifest.ts';
import type { Delivery } from './plugin.ts';
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Server } from 'node:net';
import type { Static, TProperties, TSchema, TObject } from 'typebox';
import type { Action } from '../contract/action.ts';
import type { Cache, CacheOptions } from './cache.ts';
import type { Backends, Forwarded, KeyValue, Sealed, SealedBox, SealedPlace } from '../contract/capabilities.ts';
import type { TaskQueue } from '../contract/task.ts';
import type { AnyContract } from '../contract/contract.ts';
import type { KeySeeds } from '../contract/key.ts';
import type { MetricsOf } from '../contract/metric.ts';
import type { FieldFault, ProblemError } from '../contract/problem.ts';
import type { AnyRoute, PathParams } from '../contract/route.ts';
import type { CronTimes } from './cron-times.ts';
import type { ExplainedDecision, PolicyInquiry } from './policy-inquiry.ts';
import type { ProcessHost } from './process-host.ts';
import type { Reply } from './reply.ts';
import type { SigningAuthority } from './signing-authority.ts';
import type { Lock } from './lock.ts';
import type { PagePart, PageSpec } from './paging.ts';
import type { Sql } from './sql.ts';
import type { TokenChecks } from './token-claims.ts';
import type { EnvironmentRows } from './environment-rows.ts';
import type { Tx } from './tx.ts';

export interface Logger {
  debug(fields: object, message: string): void;
  info(fields: object, message: string): void;
  warn(fields: object, message: string): void;
  error(fields: object, message: string): void;
}

type AttributeScalar = string | number | boolean;
/** What the policy administration keeps under one key of a principal (G-K-10). */
export type AttributeValue = AttributeScalar | readonly AttributeScalar[];

interface CallerBase {
  /** `sub` of the token, or the workload's name. */
  readonly subject: string;
  readonly clientId: string;
  /** Environment of the request: the token's, or the target of a delegated token. */
  readonly envId: string | undefined;
  readonly authEnvId: string | undefined;
  /** x5t#S256 of the presented certificate, when one was. */
  readonly thumbprint: string | undefined;
  readonly vertical: string | undefined;
  /** Platform administrator (`sys:sys:admin` in the system environment). */
  readonly platformAdmin: boolean;
  /** Whether the identity is bound to the presented certificate (RFC 8705). */
  readonly bound: boolean;
  readonly email: string | undefined;
  readonly emailVerified: boolean;
  readonly sessionId: string | undefined;
}
/** A person, or a workload acting for one: `userId` is `act.sub` where present, else `sub` (G-K-06). */
export interface UserCaller extends CallerBase {
  readonly kind: 'user' | 'delegated';
  readonly userId: string;
  readonly service: string | undefined;
}
/** A workload: `service` is its name up to the first hyphen, from the certificate (G-K-09). */
export interface MachineCaller extends CallerBase {
  readonly kind: 'machine';
  readonly userId: undefined;
  readonly service: string;
}
export type Caller = UserCaller | MachineCaller;

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
type BodyOf<O> = O extends { body: infer S extends TSchema } ? Static<S> : undefined;
type QueryOf<O> = O extends { query: infer Q extends TProperties } ? Static<TObject<Q>> : Readonly<Record<string, never>>;
type ReturnOf<O> = O extends { returns: infer S extends TSchema } ? Static<S> : void;

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
  /** What `If-Match` names: versions, of which {@link Context.requireVersion} wants one. None when it was not sent, or takes any. */
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
  PathParams<C['routes'][R]['path']>,
  QueryOf<C['routes'][R]['options']>,
  BodyOf<C['routes'][R]['options']>,
  CallerOf<C, C['routes'][R]['options']['gate']>,
  EnvOf<C, C['routes'][R]['options']>
>;

/** Input of a typed call: path parameters, query and body, whichever the route has. */
export type CallInput<R extends AnyRoute> = (unknown extends PathParams<R['path']> ? unknown : { params: PathParams<R['path']> }) &
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
}

type ConfigOf<C extends AnyContract> = C['base'] extends { config: infer S extends TSchema } ? Static<S> : Readonly<Record<string, never>>;

/** Whoever sent a request, with what this very credential permits. */
export interface Sender {
  readonly caller: Caller;
  permits(action: string): Promise<boolean>;
}

type KeysOf<C extends AnyContract> = C['base'] extends { keys: infer K }
  ? { readonly [N in keyof K]: K[N] extends { use: 'seal' } ? SealedBox : KeySeeds }
  : Readonly<Record<string, SealedBox | KeySeeds>>;

/** Everything alive that a plugin may touch. */
export interface Context<C extends AnyContract, U extends Readonly<Record<string, AnyContract>> = Readonly<Record<never, never>>> {
  readonly config: ConfigOf<C>;
  readonly log: Logger;
  readonly db: {
    readonly sql: Sql;
    tx<T>(work: (tx: Tx<C>) => Promise<T>): Promise<T>;
    /** The rows of one environment, of tables that the contract names under `rowSecurity`. */
    of(envId: string): EnvironmentRows<C>;
    /** The rows of all environments, for work that is about all of them: a sweep, a sum, a migration of data. */
    ofAll(): EnvironmentRows<C>;
    /**
     * One statement that is a transaction by itself, without round trips to begin and to commit it. `announce` queues its events; `write`
     * makes the statement and has them in it by `announced`: a definition behind its own in its `with`, which writes them where `where`
     * holds.
     */
    one<Row extends object>(
      announce: (tx: Pick<Tx<C>, 'emit' | 'emitAll' | 'audit'>) => Promise<void>,
      write: (sql: Sql, announced: (where: unknown) => unknown) => PromiseLike<readonly Row[]>,
    ): Promise<readonly Row[]>;
    /** Wakes on `NOTIFY channel`; a poll beside it is the caller's. */
    listen(channel: string, listener: (payload: string) => void): Promise<AsyncDisposable>;
  };
  readonly clock: { now(): Date };
  /** Repeats `work` on the clock until it is disposed, one run at a time: for what lasts as long as a request. Anything longer is a job. */
  every(ms: number, work: () => Promise<void> | void): Disposable;
  /** The times of five fields of minute, hour, day, month and weekday in an IANA zone; undefined where either cannot be read. */
  cron(expression: string, timezone: string): CronTimes | undefined;
  readonly services: { readonly [K in keyof U]: Client<U[K]> };
  readonly events: {
    /**
     * Hears the events of a family from now on, in this process alone, until it is disposed: for what is known only at run time. `event`
     * names one of them. For services of the platform; everything else is declared under `consumes`. A handler that throws is given the
     * event again.
     */
    subscribe(
      wanted: { readonly family: string; readonly event?: string; readonly concurrency?: number },
      handler: (delivery: Delivery<Readonly<Record<string, unknown>>>) => Promise<void>,
    ): AsyncDisposable;
  };
  readonly tasks: TaskQueue<C>;
  /** The metrics of the contract: `metrics.decisions.add(1, { outcome: 'approved' })`. */
  readonly metrics: MetricsOf<C>;
  /** The keys of the contract, each as its use says. */
  readonly keys: KeysOf<C>;
  /**
   * Seals anew, under the key of now, what lies sealed under one that came before: in these places, and in the service's tasks that wait.
   * For a job; when it is through, the key before may be dropped.
   */
  reseal(key: keyof KeysOf<C> & string, places: readonly SealedPlace[], signal: AbortSignal): Promise<void>;
  readonly secrets: {
    read(reference: string): Promise<Uint8Array | undefined>;
  };
  readonly policy: {
    /**
     * What the policy administration says of a principal in an environment: the attributes of this service (G-K-10), as of the last look.
     */
    attributes(principal: string, envId: string): Promise<Readonly<Record<string, unknown>>>;
    /**
     * Writes attributes of a principal, all or none; `null` takes one away. Every process of this service goes by them within seconds, as it
     * does by those that an administrator writes (G-K-10). Who may ask for it, and the word of it in the trail, are the caller's to see to.
     * Fails with `sys`'s problems while the registry is away.
     * @returns all attributes of the principal, as they were and as they are
     */
    setAttributes(
      principal: string,
      envId: string,
      values: Readonly<Record<string, AttributeValue | null>>,
    ): Promise<{ readonly before: Readonly<Record<string, unknown>>; readonly after: Readonly<Record<string, unknown>> }>;
    /** A finer question than the gate's, for the credential of the caller's request; the decision is logged once with its reason. */
    allows(caller: Caller, action: string, resource?: { type: string; id: string }): Promise<boolean>;
    /** What any service would decide for others, and by which policies; records nothing (capability `policy-store`). */
    explain(inquiry: PolicyInquiry): Promise<readonly ExplainedDecision[]>;
  };
  /** Every loaded manifest, read only. */
  readonly catalog: {
    manifests(): readonly Manifest[];
    actions(): readonly {
      scope: string;
      service: string;
      vertical: string;
      title: string;
      admin: boolean;
      grants: Action['grants'] | undefined;
      machineOnly: boolean;
    }[];
    /**
     * A check by the schema of a declared event: no fault when the value fits, each with a JSON pointer that begins with `base` when not.
     * `foreign` for a schema that no loaded manifest has: it is interpreted, and its patterns do not count. Make it once and keep it.
     */
    checkOf(schema: object, options?: { base?: string; foreign?: boolean }): (value: unknown) => readonly FieldFault[];
  };
  readonly platform: {
    readonly domain: string;
    readonly build: string;
    readonly dataDir: string;
    readonly production: boolean;
    /** The address of this machine in the fleet. */
    readonly ip: string;
    publicOrigin(host: string): string;
    /** A UUIDv7. */
    newId(): string;
  };
  /** A cache of answers of somebody else, on this clock: bounded, by time, one question at a time for a key. */
  cache<V>(options: CacheOptions<V>): Cache<V>;
  /** A limit on how often something is done, counted for all processes of the service together. */
  limit(options: LimitOptions): Limit;
  /** One holder for all processes of the service, renewed while it works. */
  readonly lock: Lock;
  /** A folder that is this service's own, of mode 0700, made when first asked for. It is on this machine alone, and part of a backup. */
  readonly files: { directory(): string };
  readonly kv: KeyValue;
  readonly backends: Backends;
  /** Signing, for the certificate authority alone (capability `authority`). */
  readonly authority: SigningAuthority;
  /**
   * Has a server listen for a `listener` door. True where the socket is shared with the instance that comes next: leave it by
   * `net.Server.prototype.close`, which drops nobody who was accepted.
   */
  listen(door: string, server: Server, at: { readonly port: number; readonly address: string }): Promise<boolean>;
  /** Processes of this machine, for the supervisor alone (capability `processes`). */
  readonly processes: ProcessHost;
  readonly auth: {
    /**
     * Who sent a request, found the way the gate finds it, for doors that admit by more than a gate. `undefined` where nothing was shown; a
     * token bound to a key is refused.
     */
    verify(request: Pick<Request, 'headers' | 'peer'>): Promise<Sender | undefined>;
  };
  readonly tokens: TokenChecks;
  /**
   * One page of a keyset listing: `read` is given the condition, the order and the limit for its statement. Throws 400 `invalid_cursor`,
   * which every listing declares by itself.
   */
  page<Row extends object>(
    query: { readonly limit?: number; readonly cursor?: string },
    spec: PageSpec,
    read: (part: PagePart) => PromiseLike<readonly Row[]>,
  ): Promise<{ items: Row[]; next_cursor: string | null }>;
  /**
   * Refuses a change to what is no longer the version that `If-Match` names: 412 `precondition_failed` (RFC 9110, 13.1.1). Ask inside the
   * transaction, under the row's lock.
   */
  requireVersion(ifMatch: Request['ifMatch'], version: number): void;
  problem(
    code: keyof C['problems'] & string,
    more?: { detail?: string; cause?: unknown; extra?: Record<string, unknown>; headers?: Record<string, string> },
  ): ProblemError;
  /** Ties a resource to the plugin: released in reverse order when it stops, or when start fails. */
  own<T extends Disposable | AsyncDisposable>(resource: T): T;
}

export type HandlerResult<O> = Promise<ReturnOf<O> | Reply<ReturnOf<O>>>;
export type { BodyOf, QueryOf, ReturnOf };
export type { Backends, Forwarded, KeyValue, Sealed, SealedBox, SealedPlace };
