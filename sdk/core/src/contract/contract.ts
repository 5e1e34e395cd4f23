import type { TObject } from 'typebox';
import type { Action, Gate } from './action.ts';
import type { EventDef, Subscription } from './event.ts';
import type { KeyDecl } from './key.ts';
import type { MetricDef } from './metric.ts';
import type { PageDecl } from './page/page.ts';
import type { ProblemDecl } from './problem.ts';
import type { AnyRoute, RouteEnv } from './route.ts';
import type { JobDef, TaskDef } from './task.ts';
import type { TemplateDecl } from './template.ts';

/** Where and when a service runs (decisions G-CAP-02; tiers of doc3). */
export interface Placement {
  readonly tier: number;
  readonly singleton?: boolean;
  readonly pin?: string;
  readonly anti?: readonly string[];
  /** Seconds between looks at the outbox when nothing was heard of a new event; 2 when absent (CA-087, NTF-010). */
  readonly outbox_poll_s?: number;
  /** Of a vertical: megabytes that its heap may have, 64 to 4096; 512 when absent. */
  readonly memory_mb?: number;
  /**
   * In a process of its own: percent by which its heap may outgrow what lived at the last full collection, 20 to 400. The engine decides
   * where nothing is said.
   */
  readonly heap_growth?: number;
}

/** Services this one calls, each with the actions it needs there. The host grants exactly these to its workload. */
export type WorkloadNeeds = Readonly<Record<string, readonly string[]>>;

/**
 * What becomes of a service's rows when their environment is deleted. Every table with a column `env_id` is in one of the two lists, or its
 * rows go with those they belong to (`on delete cascade`). `purge` names what a row is, in the plural, for the preview of a delete.
 */
export interface EnvironmentEnd {
  /** Noun by table, in the order in which rows are deleted. */
  readonly purge?: Readonly<Record<string, string>>;
  /** Why rows stay, or who takes them away, by table. */
  readonly keep?: Readonly<Record<string, string>>;
}

/** Routes by which a person reads what a service has for them: the console shows a bell with the unread count, and the list behind it. */
export interface InboxDecl {
  /** A listing, newest first; takes `unread`. */
  readonly list: string;
  /** Answers `unread_count`. */
  readonly unread: string;
  /** Marks one read; its path parameter is the row's `id`. */
  readonly read: string;
  readonly readAll: string;
  /** Members of a row. */
  readonly row: { readonly id: string; readonly title: string; readonly at: string; readonly readAt: string; readonly links?: string };
  /** Events that move the count. */
  readonly live: readonly string[];
  /** The page on which a person says what is sent out. */
  readonly settings?: string;
}

type Actions = Readonly<Record<string, Action>>;
type Problems = Readonly<Record<string, ProblemDecl>>;
type Events = Readonly<Record<string, EventDef>>;

/** A line of the first start, and the page that it leads to. */
export interface FirstStep {
  readonly text: string;
  readonly page: string;
}

interface Base {
  /** Wire id: hostname label, service segment of event names, log field (house 4). */
  readonly id: string;
  /** Owner of the event names; `platform` when absent. */
  readonly vertical?: string;
  readonly title: string;
  /** Stream family of its events; the id when absent. */
  readonly family?: string;
  readonly uses?: WorkloadNeeds;
  /**
   * Further workloads of the service beside its own, `{id}-{name}` (G-K-09), each with its needs. A client of a service that only one of
   * these needs calls as that workload.
   */
  readonly workloads?: Readonly<Record<string, WorkloadNeeds>>;
  readonly placement: Placement;
  /** Which environment its routes are about unless they say otherwise: `own` for a vertical, `any` for the platform's services. */
  readonly env?: RouteEnv;
  /** Other services stop without it: no environment can turn it off. Counts for the platform's own services only. */
  readonly essential?: boolean;
  /** False where no application of a tenant calls it through the gateway, whatever its list says (C12). */
  readonly forApplications?: false;
  /** Paths without a version that a standard or a document fixes, by how they begin, each with its source. */
  readonly unversioned?: Readonly<Record<string, string>>;
  readonly config?: TObject;
  /** Keys that its data rest on. */
  readonly keys?: Readonly<Record<string, KeyDecl>>;
  readonly consumes?: Readonly<Record<string, Subscription>>;
  readonly jobs?: Readonly<Record<string, JobDef>>;
  /** Work queued with a change and done after it, by name. */
  readonly tasks?: Readonly<Record<string, TaskDef>>;
  /** Figures of its own, by name; every service has those of requests, queues and its process. */
  readonly metrics?: Readonly<Record<string, MetricDef>>;
  readonly pages?: Readonly<Record<string, PageDecl>>;
  /** What its messages say, by name: a message of the template `{id}.{name}` says this unless its environment has words of its own. */
  readonly templates?: Readonly<Record<string, TemplateDecl>>;
  readonly inbox?: InboxDecl;
  /**
   * What whoever starts the platform for the first time in development should know, and the page it is about. Counts for the platform's own
   * services only.
   */
  readonly firstSteps?: FirstStep;
  /** Asked of every service that has tables. */
  readonly onEnvironmentDeleted?: EnvironmentEnd;
  /**
   * Tables whose rows are held to the environment that a transaction names (`ctx.db.of`), as a second wall behind `where env_id = …`. Each
   * has a column `env_id uuid` and stands under `onEnvironmentDeleted`. Name the environment everywhere one release before a table is
   * listed here: the release before runs on while the new one starts.
   */
  readonly rowSecurity?: readonly string[];
  /** Parts of the kernel beyond the ordinary; only platform services may ask. */
  readonly capabilities?: readonly ('key-value' | 'backends' | 'authority' | 'catalog' | 'policy-store' | 'processes')[];
  /**
   * Folders of the data folder that belong to this service, where a document fixes their names. Every service has one beside them without
   * asking (`ctx.files`). Only platform services may declare any.
   */
  readonly folders?: readonly string[];
  /** Names of events that break the grammar, each with the decision that allows it (C3, C4). */
  readonly waivers?: Readonly<Record<string, string>>;
  /** Further paths of the kernel's own endpoints, where a document fixes them (G-K-05): `{ '/readiness': '/v1/readiness' }`. */
  readonly aliases?: Readonly<Record<string, string>>;
  /** Hosts beside `{id}.ops.sys.{domain}` that this service answers on. */
  readonly hosts?: readonly string[];
}

type Checked<R, A, P, E> = {
  readonly [K in keyof R]: R[K] extends { options: infer O }
    ? {
        options: {
          gate: Gate<keyof A & string>;
          problems?: O extends { problems: unknown } ? readonly (keyof P & string)[] : undefined;
          emits?: O extends { emits: unknown } ? readonly (keyof E & string)[] : undefined;
        };
      }
    : never;
};

export interface Contract<
  A extends Actions = Actions,
  P extends Problems = Problems,
  E extends Events = Events,
  R extends Readonly<Record<string, AnyRoute>> = Readonly<Record<string, AnyRoute>>,
  B extends Base = Base,
> {
  readonly base: B;
  readonly actions: A;
  readonly problems: P;
  readonly events: E;
  readonly routes: R;
}
// biome-ignore lint/suspicious/noExplicitAny: the bound of every contract, whatever its members
export type AnyContract = Contract<any, any, any, any, any>;

/**
 * Declares everything others may know of a service. Pure data: it survives JSON and has no side effect.
 * Gates, problems and emitted events that are not declared do not compile; what arrives as JSON is held by the host's checks.
 */
export function defineContract<
  const B extends Base,
  const A extends Actions,
  const P extends Problems,
  const E extends Events,
  const R extends Readonly<Record<string, AnyRoute>>,
>(
  declaration: B & { actions: A; problems: P; events: E; routes: R & Checked<NoInfer<R>, NoInfer<A>, NoInfer<P>, NoInfer<E>> },
): Contract<A, P, E, R, B> {
  const { actions, problems, events, routes, ...base } = declaration;
  return { base: base as unknown as B, actions, problems, events, routes };
}
