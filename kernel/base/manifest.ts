import { Type } from '@platform/sdk';
import type {
  Action,
  AnyContract,
  AnyRoute,
  EnvironmentEnd,
  EventDef,
  JobDef,
  KeyDecl,
  PageDecl,
  Placement,
  ProblemDecl,
  RouteEnv,
  Subscription,
  TaskDef,
  TSchema,
  WorkloadNeeds,
} from '@platform/sdk';

/** The JSON of a contract: what the console, the catalog, the checks and other processes read; the plugin's code is not needed for it (G-K-21). */
export interface Manifest {
  readonly sdk: 1;
  readonly id: string;
  readonly vertical: string;
  readonly title: string;
  readonly version: string;
  readonly family: string;
  readonly uses: WorkloadNeeds;
  readonly workloads: Readonly<Record<string, WorkloadNeeds>>;
  readonly placement: Placement;
  readonly env: RouteEnv;
  readonly essential: boolean;
  readonly config?: TSchema;
  readonly keys: Readonly<Record<string, KeyDecl>>;
  readonly actions: Readonly<Record<string, Action>>;
  readonly problems: Readonly<Record<string, ProblemDecl>>;
  readonly events: Readonly<Record<string, EventDef>>;
  readonly consumes: Readonly<Record<string, Subscription>>;
  readonly jobs: Readonly<Record<string, JobDef>>;
  readonly tasks: Readonly<Record<string, TaskDef>>;
  readonly routes: Readonly<Record<string, AnyRoute>>;
  readonly pages: Readonly<Record<string, PageDecl>>;
  readonly onEnvironmentDeleted?: EnvironmentEnd;
  readonly capabilities: readonly string[];
  readonly waivers: Readonly<Record<string, string>>;
  readonly aliases: Readonly<Record<string, string>>;
  readonly hosts: readonly string[];
}

/** Prints a contract as its manifest. Only what survives JSON is in it, so a round trip means the same. */
export function manifestOf(contract: AnyContract, version: string): Manifest {
  const { base, actions, problems, events, routes } = contract;
  const manifest = {
    sdk: 1,
    id: base.id,
    vertical: base.vertical ?? 'platform',
    title: base.title,
    version,
    family: base.family ?? base.id,
    uses: base.uses ?? {},
    workloads: base.workloads ?? {},
    placement: base.placement,
    env: base.env ?? ((base.vertical ?? 'platform') === 'platform' ? 'any' : 'own'),
    essential: base.essential ?? false,
    config: base.config,
    keys: base.keys ?? {},
    actions,
    problems,
    events: withPolicyEvent(base, events),
    consumes: base.consumes ?? {},
    jobs: base.jobs ?? {},
    tasks: base.tasks ?? {},
    routes,
    pages: withWorkPage(base),
    onEnvironmentDeleted: base.onEnvironmentDeleted,
    capabilities: base.capabilities ?? [],
    waivers: base.waivers ?? {},
    aliases: base.aliases ?? {},
    hosts: base.hosts ?? [],
  };
  return JSON.parse(JSON.stringify(manifest)) as Manifest;
}

const PolicyChange = Type.Object({
  service: Type.String(),
  policy_set: Type.Union([Type.Object({}, { additionalProperties: true }), Type.Null()]),
  deleted_id: Type.Optional(Type.String()),
  version: Type.Integer(),
  mode: Type.Union([Type.Literal('shadow'), Type.Literal('enforced')]),
  seeded: Type.Boolean(),
});

/** Every service of the platform tells of its own policy sets, as the registry tells of its own and of the platform's (G-K-10, F-26). */
function withPolicyEvent({ id, vertical = 'platform' }: AnyContract['base'], events: AnyContract['events']): Manifest['events'] {
  const name = policyEvent(id);
  return vertical !== 'platform' || name in events ? events : { ...events, [name]: { title: 'A policy set of this service changed', payload: PolicyChange, family: 'policy' } };
}

/** The event that tells of a service's own policy sets. */
export const policyEvent = (service: string): string => `platform:${service}:policy:updated`;

/** Whoever has tasks or jobs has a page that shows them, unless the contract says otherwise. */
function withWorkPage({ jobs = {}, tasks = {}, pages = {} }: AnyContract['base']): Manifest['pages'] {
  if ('work' in pages || Object.keys(jobs).length + Object.keys(tasks).length === 0) return pages;
  return { ...pages, work: { kind: 'work', title: 'Work', description: 'Queues and jobs of this service', scope: 'platform', nav: 900, refresh: 10 } };
}
