import type { Static, TSchema } from 'typebox';
import type { SealedBox, SealedPlace } from '../contract/capabilities.ts';
import type { AnyContract } from '../contract/contract.ts';
import type { KeySeeds } from '../contract/key.ts';
import type { MetricsOf } from './metrics.ts';
import type { KernelProblemCode } from '../contract/kernel-problems.ts';
import type { ProblemError } from '../contract/problem.ts';
import type { TaskQueue } from './work/task-queue.ts';
import type { EnvironmentRows } from '../data/environment-rows.ts';
import type { PagePart, PageRows, PageSpec } from '../data/paging.ts';
import type { Sql } from '../data/sql.ts';
import type { Tx } from '../data/tx.ts';
import type { Client } from '../request/client.ts';
import type { Request } from '../request/request.ts';
import type { Actions } from '../request/actions.ts';
import type { Cache, CacheOptions } from './cache.ts';
import type { Catalog } from './catalog.ts';
import type { CronTimes } from './work/cron-times.ts';
import type { Limit, LimitOptions, ProcessLimit, ProcessLimitOptions } from './limit.ts';
import type { Lock } from './lock.ts';
import type { Logger } from './logger.ts';
import type { Policies } from './policies.ts';

type ConfigOf<C extends AnyContract> = C['base'] extends { config: infer S extends TSchema } ? Static<S> : Readonly<Record<string, never>>;

type KeysOf<C extends AnyContract> = C['base'] extends { keys: infer K }
  ? { readonly [N in keyof K]: K[N] extends { use: 'seal' } ? SealedBox : KeySeeds }
  : Readonly<Record<string, SealedBox | KeySeeds>>;

/** Everything alive that any plugin may touch. A service of the platform is given {@link PlatformContext}, which has more. */
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
  readonly policy: Policies;
  readonly catalog: Catalog;
  /** Calls, for a person, of services that are known only at run time. */
  readonly actions: Actions;
  readonly platform: {
    readonly domain: string;
    readonly build: string;
    readonly production: boolean;
    publicOrigin(host: string): string;
    /** Where the platform's own services answer: `ops.sys.{domain}`. */
    readonly zone: string;
    /** The host of a service of the platform, by its label; without an origin it is a name, not an address. */
    host(label: string): string;
    /** The label of one of the platform's own hosts; undefined for every other. */
    labelOf(host: string): string | undefined;
    /** A UUIDv7. */
    newId(): string;
  };
  /** A cache of answers of somebody else, on this clock: bounded, by time, one question at a time for a key. */
  cache<V>(options: CacheOptions<V>): Cache<V>;
  /** A limit on how often something is done, counted for all processes of the service together, or for this one alone. */
  limit(options: ProcessLimitOptions): ProcessLimit;
  limit(options: LimitOptions): Limit;
  /** One holder for all processes of the service, renewed while it works. */
  readonly lock: Lock;
  /**
   * A folder that is this service's own, of mode 0700, made when first asked for; with a name, one of those that its contract declares
   * (`folders`). It is on this machine alone, and part of a backup.
   */
  readonly files: { directory(name?: string): string };
  /**
   * One page of a keyset listing: `read` is given the condition, the order and the limit for its statement, and the same as values where
   * the list is no table. Throws 400 `invalid_cursor`, which every listing declares by itself: no other cursor is taken in a query member
   * of that name (G-K-04).
   */
  page<Row extends object>(
    query: { readonly limit?: number; readonly cursor?: string },
    spec: PageSpec,
    read: (part: PagePart) => PromiseLike<PageRows<Row>>,
  ): Promise<{ items: Row[]; next_cursor: string | null }>;
  /**
   * Refuses a change to what is no longer the version that `If-Match` names: 412 `precondition_failed` (RFC 9110, 13.1.1). Ask inside the
   * transaction, under the row's lock.
   */
  requireVersion(ifMatch: Request['ifMatch'], version: number): void;
  /** A problem to throw: one of the contract's, or one that every service can give. */
  problem(
    code: (keyof C['problems'] & string) | KernelProblemCode,
    more?: { detail?: string; cause?: unknown; extra?: Record<string, unknown>; headers?: Record<string, string> },
  ): ProblemError;
  /** Ties a resource to the plugin: released in reverse order when it stops, or when start fails. */
  own<T extends Disposable | AsyncDisposable>(resource: T): T;
}
