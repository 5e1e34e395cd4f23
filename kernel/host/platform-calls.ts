import { setTimeout as delay } from 'node:timers/promises';
import { type InboxDecl, isProblem, type LivingService, type Logger } from '@platform/sdk';
import { backoff } from '../base/backoff.ts';
import type { Manifest } from '../base/manifest.ts';
import { kernelProblem } from '../base/kernel-problem.ts';
import type { EnvironmentState } from '../identity/environment-states.ts';
import type { AccessSources } from '../identity/tokens/access-closure.ts';
import type { Workload } from '../identity/workload.ts';
import type { DeliveryTargets } from '../outbox/relay/bus-delivery.ts';
import type { ConsumerBus, Lost, StreamEntry } from '../outbox/consumption/consumer-bus.ts';
import type { PolicyPort } from '../policy/policy-port.ts';
import type { BackendPools } from '../routing/backend-pools.ts';
import type { CallInput, ServiceCaller } from '../routing/service-caller.ts';
import { ASKED_ROUTES } from './asked-routes.ts';
import { catalogActions } from './catalog-actions.ts';
import type { Registration } from './context/actions/registered-actions.ts';
import { operatorActions } from './operator-actions.ts';

/*
 * What the kernel itself asks of services. It knows them by wire path, as any client would.
 */

type AskedRoute = { readonly method: 'GET' | 'POST' | 'PUT'; readonly path: string };

/** Asks what {@link ASKED_ROUTES} names. */
export const ask = <S extends keyof typeof ASKED_ROUTES>(
  caller: ServiceCaller,
  workload: Workload,
  service: S,
  name: keyof (typeof ASKED_ROUTES)[S] & string,
  input: CallInput,
): Promise<unknown> => caller.call(workload, { service, name, route: ASKED_ROUTES[service][name] as AskedRoute, problems: {} }, input);

/** The identity service: keys, live scopes, workloads of verticals. */
export function identityCalls(caller: ServiceCaller, workload: Workload) {
  return {
    jwks: async (pools: BackendPools) => {
      const response = await pools.request(workload, 'auth', {
        method: 'GET',
        path: '/.well-known/jwks.json',
        headers: { accept: 'application/json' },
        timeoutMs: 5_000,
      });
      if (response.statusCode !== 200) {
        await response.body.dump();
        throw kernelProblem('not_ready', { detail: 'The keys that tokens are signed with cannot be read now.' });
      }
      return (await response.body.json()) as { keys: JsonWebKey[] };
    },
    personScopes: async (userId: string, envId: string) => {
      const answer = (await ask(caller, workload, 'auth', 'userScopes', { params: { user_id: userId }, query: { env_id: envId } })) as {
        scopes: string[];
      };
      return answer.scopes;
    },
    workload: async (name: string) => {
      try {
        return (await ask(caller, workload, 'auth', 'getWorkload', { params: { name } })) as { vertical: string; scopes: string[] };
      } catch (error) {
        if (isProblem(error) && error.status === 404) return undefined;
        throw error;
      }
    },
    /** The environment that signs in on a host. */
    issuer: async (host: string) => {
      try {
        const answer = await ask(caller, workload, 'auth', 'issuerOn', { params: { host } });
        return (answer as { env_id: string }).env_id;
      } catch (error) {
        if (isProblem(error) && error.status === 404) return undefined;
        throw error;
      }
    },
  } satisfies Pick<AccessSources, 'personScopes' | 'workload'> & Record<string, unknown>;
}

/** The registry's policy store (C27). */
export function policyPort(caller: ServiceCaller, workload: Workload): PolicyPort {
  const call = (name: keyof (typeof ASKED_ROUTES)['sys'], input: CallInput) => ask(caller, workload, 'sys', name, input) as Promise<never>;
  return {
    snapshot: (service, envId) => call('policySnapshot', { query: { service, env_id: envId } }),
    upsertSet: row => call('policyUpsertSet', { body: row }),
    upsertRelation: row => call('policyUpsertRelation', { body: row }),
    upsertAttribute: row => call('policyUpsertAttribute', { body: row }),
    putAttributes: row => call('policyPutAttributes', { body: row }),
    remove: row => call('policyRemove', { body: row }),
  };
}

/** The registry's word for the state of an environment. */
export function environmentState(caller: ServiceCaller, workload: Workload) {
  return async (envId: string): Promise<EnvironmentState> => {
    const answer = await ask(caller, workload, 'sys', 'environmentState', { params: { env_id: envId } });
    return (answer as { state: EnvironmentState }).state;
  };
}

/** Every registered service, and where its life stands. */
export async function livingServices(caller: ServiceCaller, workload: Workload, signal: AbortSignal): Promise<readonly LivingService[]> {
  const answer = await ask(caller, workload, 'sys', 'listLives', { signal });
  return (answer as { items: LivingService[] }).items;
}

/** Every registered service with the actions that it offers by name, page by page. */
export async function registrations(caller: ServiceCaller, workload: Workload): Promise<Registration[]> {
  const all: Registration[] = [];
  for (let cursor: string | null | undefined; cursor !== null; ) {
    const query = { limit: 200, ...(cursor ? { cursor } : {}) };
    const page = await ask(caller, workload, 'sys', 'listVerticals', { query });
    const { items, next_cursor } = page as { items: Registration[]; next_cursor: string | null };
    all.push(...items);
    cursor = next_cursor;
  }
  return all;
}

/** Where the relay takes rows. */
export function deliveryTargets(caller: ServiceCaller, workloadOf: (service: string) => Workload): DeliveryTargets {
  return {
    produceBatch: async (service, events, signal) =>
      (await ask(caller, workloadOf(service), 'bus', 'produceBatch', { body: { events }, signal })) as never,
    recordAudits: async (service, events, signal) =>
      void (await ask(caller, workloadOf(service), 'sys', 'recordAudits', { body: { events }, signal })),
  };
}

/** The event bus as a consumer group member. */
export function consumerBus(caller: ServiceCaller, workload: Workload): ConsumerBus {
  const call = (name: keyof (typeof ASKED_ROUTES)['bus'], body: object, signal?: AbortSignal) =>
    ask(caller, workload, 'bus', name, { body, ...(signal ? { signal, longPoll: true } : {}) });
  return {
    consume: async (request, signal) => (await call('consume', request, signal)) as { entries: StreamEntry[]; gaps?: object[] },
    ack: async request => (await call('ack', request)) as Lost,
    nack: async request => (await call('nack', request)) as Lost,
    extend: async request => (await call('extend', request)) as Lost,
    close: async request => void (await call('closeGroup', request)),
  };
}

/**
 * Registers what a vertical brings: services, scopes, error codes, pages (G-SYS-12). Every process of a vertical speaks for all of its
 * services, because any of them may come later than the others; identical content is a no-op.
 */
export function registerVertical({
  caller,
  services,
  manifests,
  workloadOf,
  log,
  signal,
}: {
  caller: ServiceCaller;
  services: readonly Manifest[];
  manifests: readonly Manifest[];
  workloadOf: (service: string) => Workload;
  log: Logger;
  signal: AbortSignal;
}): void {
  for (const vertical of new Set(services.map(service => service.vertical))) {
    // In one order, whichever process speaks: the registry tells a change by the text.
    const members = manifests.filter(manifest => manifest.vertical === vertical).sort((left, right) => (left.id < right.id ? -1 : 1));
    // The registry's own process speaks for the platform.
    const speaker = services.find(service => service.vertical === vertical && (vertical !== 'platform' || service.id === 'sys'))?.id;
    if (speaker === undefined) continue;
    void (async () => {
      for (let attempt = 0; !signal.aborted; attempt++) {
        try {
          await ask(caller, workloadOf(speaker), 'sys', 'registerVertical', { body: registration(vertical, members) });
          return;
        } catch (error) {
          log[attempt === 5 ? 'error' : 'debug']({ vertical, err: error }, 'registration failed; trying on');
          await delay(backoff(attempt, { baseMs: 200, capMs: 5_000, jitter: true }), undefined, { signal, ref: false }).catch(
            () => undefined,
          );
        }
      }
    })();
  }
}

function registration(vertical: string, members: readonly Manifest[]): object {
  const actions = members.flatMap(catalogActions);
  return {
    vertical,
    version: members.map(({ id, version }) => `${id}@${version}`).join(','),
    services: members.map(manifest => ({
      service: manifest.id,
      label: manifest.title,
      base_path: '/',
      essential: manifest.essential,
      ...(manifest.onEnvironmentDeleted?.purge ? { purges_environments: true } : {}),
      nav: navigationOf(manifest),
      ...(manifest.inbox ? { inbox: inboxOf(manifest, manifest.inbox) } : {}),
      pages: Object.keys(manifest.pages),
      actions: operatorActions(manifest),
      stream_families: [...new Set(Object.values(manifest.events).map(({ family }) => family ?? manifest.family))],
    })),
    admin_scopes: actions.filter(({ admin }) => admin).map(({ scope }) => scope),
    scopes: actions.map(({ scope, service, title, admin, grants, machineOnly }) => ({
      scope,
      service,
      title,
      admin,
      machine_only: machineOnly,
      ...(grants ? { grants } : {}),
    })),
    error_codes: members.flatMap(({ id, problems }) =>
      Object.entries(problems).map(([code, { status, title }]) => ({ service: id, code, status, title })),
    ),
    listings: [],
  };
}

/** What the console's navigation shows: a record is opened from its row alone. */
function navigationOf({ pages }: Manifest): object[] {
  return Object.entries(pages).flatMap(([page, { kind, title, icon, nav, scope, group }], index) =>
    nav === false || kind === 'record'
      ? []
      : [{ page, label: title, order: nav ?? index, scope: scope ?? 'env', ...(icon ? { icon } : {}), ...(group ? { group } : {}) }],
  );
}

/** An inbox as the console asks for it: paths in place of the names of routes. */
function inboxOf({ routes }: Manifest, { list, unread, read, readAll, row, live, settings }: InboxDecl): object {
  const path = (name: string) => (routes[name]?.path ?? '').replace(/\{[A-Za-z_]+\}/, '{id}');
  return {
    list: path(list),
    unread: path(unread),
    read: path(read),
    read_all: path(readAll),
    row: { id: row.id, title: row.title, at: row.at, read_at: row.readAt, ...(row.links ? { links: row.links } : {}) },
    live_types: live,
    ...(settings ? { settings } : {}),
  };
}
