import { type AnyContract, type Manifest, Type } from '@platform/sdk';

export type { Manifest } from '@platform/sdk';

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
    forApplications: base.forApplications,
    unversioned: base.unversioned,
    config: base.config,
    keys: base.keys ?? {},
    actions,
    problems,
    events: withPolicyEvent(base, events),
    consumes: base.consumes ?? {},
    jobs: base.jobs ?? {},
    tasks: base.tasks ?? {},
    metrics: base.metrics,
    routes,
    pages: withWorkPage(base),
    templates: base.templates,
    onEnvironmentDeleted: base.onEnvironmentDeleted,
    rowSecurity: base.rowSecurity,
    inbox: base.inbox,
    firstSteps: base.firstSteps,
    capabilities: base.capabilities ?? [],
    folders: base.folders ?? [],
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
  kind: Type.Optional(Type.Union([Type.Literal('relations'), Type.Literal('attributes')])),
});

/**
 * Every service of the platform tells of its own policies, as the registry tells of its own and of the platform's (G-K-10, F-26). With a
 * `kind` no set changed, but what the sets are judged by.
 */
function withPolicyEvent({ id, vertical = 'platform' }: AnyContract['base'], events: AnyContract['events']): Manifest['events'] {
  const name = policyEvent(id);
  return vertical !== 'platform' || name in events
    ? events
    : {
        ...events,
        [name]: { title: 'A policy set, relations or attributes of this service changed', payload: PolicyChange, family: 'policy' },
      };
}

/** The event that tells of a service's own policies. */
export const policyEvent = (service: string): string => `platform:${service}:policy:updated`;

/** A service that has tasks or jobs has a page that shows them, unless the contract says otherwise. */
function withWorkPage({ jobs = {}, tasks = {}, pages = {} }: AnyContract['base']): Manifest['pages'] {
  if ('work' in pages || Object.keys(jobs).length + Object.keys(tasks).length === 0) return pages;
  return {
    ...pages,
    work: {
      kind: 'work',
      title: 'Work',
      icon: 'clock',
      description: 'Queues and jobs of this service',
      scope: 'platform',
      nav: 900,
      refresh: 10,
    },
  };
}
