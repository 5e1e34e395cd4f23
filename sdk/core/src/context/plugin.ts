import type { Socket } from 'node:net';
import type { AnyContract } from '../contract/contract.ts';
import type { PayloadOf } from '../data/tx.ts';
import type { Connection, NodeExchange, RawExchange } from '../request/exchange.ts';
import type { HandlerResult, Request, RequestOf, UploadOf } from '../request/request.ts';
import type { ContextOf } from './platform/platform-context.ts';
import type { TaskPayload, TaskRun, TasksOf } from './work/task-queue.ts';
import type { StreamItem, Delivery } from '../request/delivery.ts';

type Uses = Readonly<Record<string, AnyContract>>;

type Handler<C extends AnyContract, K extends keyof C['routes']> = C['routes'][K] extends { door: infer D; options: infer O }
  ? D extends 'request'
    ? (request: RequestOf<C, K>) => HandlerResult<O>
    : D extends 'upload'
      ? (request: UploadOf<C, K>) => HandlerResult<O>
      : D extends 'stream'
        ? (request: RequestOf<C, K>) => AsyncIterable<StreamItem>
        : D extends 'socket'
          ? (connection: Connection, request: Request<Record<string, string>>) => Promise<void>
          : D extends 'raw'
            ? (exchange: RawExchange) => Promise<Response>
            : D extends 'node'
              ? (exchange: NodeExchange) => void | Promise<void>
              : (socket: Socket) => void
  : never;

/** One server-sent event; `data` goes out as JSON. */
type EventNames<U extends Uses> = { [K in keyof U]: keyof U[K]['events'] }[keyof U];
type ForeignPayload<U extends Uses, N> =
  N extends EventNames<U>
    ? { [K in keyof U]: N extends keyof U[K]['events'] ? PayloadOf<U[K], N> : never }[keyof U]
    : Readonly<Record<string, unknown>>;

export interface PluginBehaviour<C extends AnyContract, U extends Uses> {
  readonly routes: { readonly [K in keyof C['routes']]: Handler<C, K> };
  readonly on?: C['base'] extends { consumes: infer S extends Readonly<Record<string, { event: string }>> }
    ? { readonly [K in keyof S]: (delivery: Delivery<ForeignPayload<U, S[K]['event']>>) => Promise<void> }
    : undefined;
  /**
   * Told that events of a subscription, by its name under `consumes`, may have gone by unheard: once it hears, where it is each process's
   * own and so begins with the latest; and when the bus cut some before they were read (H-22). For who shows what it heard.
   */
  readonly missed?: (subscription: string) => void;
  readonly tasks?: C['base'] extends { tasks: infer T }
    ? { readonly [K in keyof T]: (payload: TaskPayload<C, K & keyof TasksOf<C>>, run: TaskRun) => Promise<void> }
    : undefined;
  readonly jobs?: C['base'] extends { jobs: infer J } ? { readonly [K in keyof J]: (signal: AbortSignal) => Promise<void> } : undefined;
  /** Runs once before the service is ready: seeds and snapshots. */
  readonly ready?: (signal: AbortSignal) => Promise<void>;
  /** Runs when the service is told to end, before it refuses work: for listeners of its own, which finish what they have. */
  readonly drain?: () => Promise<void>;
  /**
   * Further gauges of `/v1/metrics`, by snake_case name: what is held now, read when somebody asks. What happens is told to the metrics of
   * the contract (`ctx.metrics`).
   */
  readonly metrics?: () => Readonly<Record<string, number>>;
  /** Further members of `/v1/health`; one of the kernel's own names replaces its value (G-K health). */
  readonly health?: () => Readonly<Record<string, unknown>> | Promise<Readonly<Record<string, unknown>>>;
  /** Named checks that readiness reports beside the kernel's own. */
  readonly checks?: Readonly<Record<string, () => Promise<boolean>>>;
}

export interface Plugin<C extends AnyContract = AnyContract, U extends Uses = Uses> {
  readonly contract: C;
  readonly uses: U;
  readonly migrations: URL | undefined;
  readonly setup: (context: ContextOf<C, U>) => PluginBehaviour<C, U> | Promise<PluginBehaviour<C, U>>;
}
// biome-ignore lint/suspicious/noExplicitAny: the bound of every plugin, whatever its contract
export type AnyPlugin = Plugin<any, any>;

/**
 * Binds behaviour to a contract. `uses` gives the contracts of the services it calls, under the names their clients get;
 * each must be named in the contract's own `uses`, or the host refuses to load it (check E021).
 */
export function definePlugin<C extends AnyContract, const U extends Uses = Readonly<Record<never, never>>>(
  contract: C,
  plugin: {
    uses?: U;
    migrations?: URL;
    setup: (context: ContextOf<NoInfer<C>, NoInfer<U>>) => NoInfer<PluginBehaviour<C, U> | Promise<PluginBehaviour<C, U>>>;
  },
): Plugin<C, U> {
  return { contract, uses: plugin.uses ?? ({} as U), migrations: plugin.migrations, setup: plugin.setup };
}
