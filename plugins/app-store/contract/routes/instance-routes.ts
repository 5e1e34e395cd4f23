import { del, get, Id, Page, PageQuery, post, SortQuery, Type } from '@platform/sdk/contract';
import { DomainBind, DomainBinding } from '../schema/domain.ts';
import { Install, Installed, Instance, InstanceStatus, OauthClient, Setup, ShownInstall } from '../schema/instance.ts';

const ofInstance = { instance_id: Id };

const all = '/v1/app/admin/instances' as const;
const one = `${all}/{instance_id}` as const;
const bind = `${one}/domain-bind` as const;
const reads = { gate: { any: ['app:instances:read', 'app:instances:admin'] }, env: 'target' } as const;
const administers = { gate: 'app:instances:admin', env: 'target' } as const;
const installs = {
  ...administers,
  idempotency: 'secret',
  returns: Installed,
  status: 201,
  problems: [
    ...([
      'listing_ambiguous',
      'listing_not_found',
      'listing_not_installable',
      'version_not_found',
      'tenant_not_installable',
      'auth_url_not_owned',
      'redirect_uri_not_allowed',
    ] as const),
    ...(['slug_invalid', 'slug_reserved', 'instance_slug_taken', 'fqdn_taken', 'provisioning_failed', 'neighbour_unavailable'] as const),
  ],
  emits: ['platform:app:instance:created', 'platform:app:instance:activated', 'platform:app:instance:failed', 'platform:app:domain:bound'],
} as const;
const binds = [
  'instance_not_found',
  'instance_not_active',
  'binding_not_found',
  'domain_not_verified',
  'fqdn_taken',
  'neighbour_unavailable',
] as const;

/** Installed applications of an environment, which every call names (G-APP-03, G-APP-05, APP-057 to APP-059). */
export const instanceRoutes = {
  setup: post('/v1/app/setup', { summary: 'Install a listing; its client’s secret is told this once', ...installs, body: Setup }),
  listInstances: get(all, {
    summary: 'Installed applications, newest first',
    ...reads,
    query: { envId: Type.Optional(Id), status: Type.Optional(InstanceStatus), ...SortQuery('name', 'created_at'), ...PageQuery },
    returns: Page(Instance),
  }),
  getInstance: get(one, {
    params: ofInstance,
    summary: 'One installed application',
    ...reads,
    query: { envId: Type.Optional(Id) },
    returns: Instance,
    problems: ['instance_not_found'],
  }),
  deleteInstance: del(one, {
    params: ofInstance,
    summary: 'Uninstall it, with its client, groups, roles and domain',
    ...administers,
    query: { envId: Type.Optional(Id) },
    problems: ['instance_not_found', 'instance_busy', 'deprovisioning_failed'],
    emits: ['platform:app:instance:deleted', 'platform:app:domain:removed'],
  }),
  rotateSecret: post(`${one}/client-secret`, {
    params: ofInstance,
    summary: 'Give its client another secret, told this once; the one before is worth nothing from now on',
    ...administers,
    idempotency: 'secret',
    returns: OauthClient,
    problems: ['instance_not_found', 'instance_not_active', 'client_without_secret', 'neighbour_unavailable'],
    emits: ['platform:app:instance:updated'],
  }),
  bindDomain: post(bind, {
    params: ofInstance,
    summary: 'Ask for a domain, or have the records in DNS looked at',
    ...administers,
    idempotency: 'own',
    body: DomainBind,
    returns: DomainBinding,
    problems: [...binds, 'binding_exists', 'redirect_uri_not_allowed'],
    emits: ['platform:app:domain:bound', 'platform:app:domain:verified', 'platform:app:instance:updated'],
  }),
  getDomain: get(bind, {
    params: ofInstance,
    summary: 'Its domain, and what to publish in DNS',
    ...reads,
    returns: DomainBinding,
    problems: ['instance_not_found', 'binding_not_found'],
  }),
  unbindDomain: del(bind, {
    params: ofInstance,
    summary: 'Give its domain up',
    ...administers,
    problems: ['instance_not_found', 'binding_not_found', 'neighbour_unavailable'],
    emits: ['platform:app:domain:removed', 'platform:app:instance:updated'],
  }),

  // What pages do and choose from.
  install: post('/v1/app/admin/install', { summary: 'Install', ...installs, body: Install, returns: ShownInstall, hidden: true }),
  installableListings: get('/v1/app/admin/installable', {
    summary: 'Listings that can be installed here',
    ...reads,
    returns: Type.Object({ items: Type.Array(Type.Object({ value: Type.String(), label: Type.String() })) }),
    hidden: true,
  }),
  authUrls: get('/v1/app/admin/auth-urls', {
    summary: 'Where people of the organization sign in',
    ...reads,
    returns: Type.Object({ items: Type.Array(Type.Object({ value: Type.String(), label: Type.String() })) }),
    problems: ['tenant_not_installable', 'neighbour_unavailable'],
    hidden: true,
  }),
  instanceAccess: get(`${one}/access`, {
    params: ofInstance,
    summary: 'Its roles and groups at the identity service',
    ...reads,
    returns: Type.Object({
      items: Type.Array(Type.Object({ name: Type.String(), kind: Type.Union([Type.Literal('role'), Type.Literal('group')]) })),
    }),
    problems: ['instance_not_found'],
    hidden: true,
  }),
  useDomain: post(`${one}/domain`, {
    params: ofInstance,
    summary: 'Ask for a domain',
    ...administers,
    idempotency: 'own',
    body: Type.Pick(DomainBind, ['fqdn']),
    returns: DomainBinding,
    problems: [...binds, 'binding_exists', 'redirect_uri_not_allowed'],
    emits: ['platform:app:domain:bound'],
    hidden: true,
  }),
  checkDomain: post(`${one}/domain-check`, {
    params: ofInstance,
    summary: 'Look at the records in DNS',
    ...administers,
    returns: DomainBinding,
    problems: binds,
    emits: ['platform:app:domain:verified', 'platform:app:instance:updated'],
    hidden: true,
  }),
  instanceDomains: get(`${one}/domains`, {
    params: ofInstance,
    summary: 'Its domain, if it has one',
    ...reads,
    returns: Type.Object({ items: Type.Array(DomainBinding) }),
    problems: ['instance_not_found'],
    hidden: true,
  }),
} as const;
