import { defineContract, event, get, Id, Page, PageQuery, post, put, del, Type } from '@platform/sdk/contract';
import * as S from './schema.ts';

const orgIds = Type.Object({ org_id: Id });
const envIds = Type.Object({ env_id: Id, org_id: Id });
const policyGate = 'sys:policy:store';
const PolicyRow = { env_id: Id, service: Type.String({ maxLength: 64 }) };

/** Tenant registry and control plane (doc1; G-SYS). */
export const registry = defineContract({
  id: 'sys',
  title: 'Tenant registry',
  placement: { tier: 15 },
  uses: { auth: ['auth:membership:read', 'auth:membership:write'] },
  capabilities: ['key-value'],
  config: Type.Object({
    auditRetentionDays: Type.Integer({ env: 'PLATFORM_SYS_AUDIT_RETENTION_DAYS', default: 400, minimum: 1, description: 'Days an audit event is kept' }),
  }),

  actions: {
    'sys:sys:admin': { title: 'Administer the platform', principals: ['user', 'delegated'] },
    'sys:read': { title: 'Read organizations and environments' },
    'sys:org:admin': { title: 'Create and change organizations' },
    'sys:env:admin': { title: 'Create and change environments' },
    'sys:app:admin': { title: 'Manage applications of an environment' },
    'sys:services:admin': { title: 'Enable and disable services' },
    'sys:memberships:admin': { title: 'Manage members and invitations' },
    'sys:instances:read': { title: 'Resolve hosts and app instances' },
    'sys:verticals:write': { title: 'Register a vertical', principals: ['machine'], bound: true },
    'audit:read': { title: 'Read the audit trail' },
    'audit:write': { title: 'Record audit events', principals: ['machine'] },
    'tenants:read': { title: 'Read tenant snapshots', principals: ['machine'], bound: true },
    'sys:policy:store': { title: 'Keep the policy data of the own service', principals: ['machine'], bound: true },
  },

  problems: {
    not_org_member: { status: 403, title: 'Not a member of this organization', retry: 'never' },
    org_not_found: { status: 404, title: 'No such organization', retry: 'never' },
    env_not_found: { status: 404, title: 'No such environment', retry: 'never' },
    hostname_unresolved: { status: 404, title: 'Nobody answers on this host', retry: 'never' },
    slug_invalid: { status: 400, title: 'The slug does not follow the rules', retry: 'never' },
    slug_reserved: { status: 400, title: 'The slug is reserved', retry: 'never' },
    slug_taken: { status: 409, title: 'This slug is in use', retry: 'never' },
    hostname_taken: { status: 409, title: 'This host belongs to somebody else', retry: 'never' },
    immutable_field: { status: 400, title: 'A slug cannot change', retry: 'never' },
    unknown_service: { status: 400, title: 'No such service', retry: 'never' },
    invalid_cursor: { status: 400, title: 'The cursor is not one of ours', retry: 'never' },
    keyset_incomplete: { status: 400, title: 'after_ts and after_id go together', retry: 'never' },
    org_not_active: { status: 409, title: 'The organization is not active', retry: 'never' },
    org_suspended: { status: 409, title: 'The organization is suspended', retry: 'never' },
    env_suspended: { status: 409, title: 'The environment is suspended', retry: 'never' },
    record_archived: { status: 409, title: 'It is archived', retry: 'never' },
    system_record_protected: { status: 409, title: 'The platform needs this record', retry: 'never' },
    platform_admin_required: { status: 403, title: 'Only a platform administrator may do this', retry: 'never' },
    vertical_mismatch: { status: 403, title: 'The identity belongs to another vertical', retry: 'never' },
    tenant_service_disabled: { status: 403, title: 'The service is disabled for this environment', retry: 'never' },
    foreign_policy: { status: 403, title: 'A service keeps only its own policies', retry: 'never' },
    platform_origin_row: { status: 409, title: 'The platform manages this row', retry: 'never' },
    policy_row_not_found: { status: 404, title: 'No such row', retry: 'never' },
    provisioning_failed: { status: 500, title: 'The access model could not be made; nothing was created', retry: 'later', log: 'error' },
    identity_unavailable: { status: 503, title: 'The identity service is away', retry: 'later' },
  },

  events: {
    'platform:sys:org:created': event('An organization exists', S.TenantSnapshot),
    'platform:sys:org:updated': event('An organization changed', S.TenantSnapshot),
    'platform:sys:org:archived': event('An organization was archived', orgIds),
    'platform:sys:org:deleted': event('An organization is gone', orgIds),
    'platform:sys:env:created': event('An environment exists', S.TenantSnapshot),
    'platform:sys:env:updated': event('An environment changed', S.TenantSnapshot),
    'platform:sys:env:archived': event('An environment was archived', envIds),
    'platform:sys:env:deleted': event('An environment is gone', envIds),
    'platform:sys:service:updated': event('A service was enabled or disabled', Type.Object({ env_id: Id, service: Type.String() })),
    'platform:sys:vertical:registered': event('A vertical registered its services', Type.Object({ vertical: Type.String(), version: Type.String() })),
    'platform:sys:audit:recorded': event('An audit event was stored', S.Audit, { family: 'audit' }),
    'platform:sys:identity:updated': event('Access changed', Type.Object({ env_id: Id, subject_ids: Type.Array(Type.String()) }), { family: 'policy' }),
    'platform:sys:policy:updated': event('A policy set changed', S.PolicyChange, { family: 'policy' }),
  },

  routes: {
    createOrg: post('/v1/o', { summary: 'Create an organization', gate: 'sys:org:admin', body: S.NewOrg, returns: S.Org, problems: ['slug_invalid', 'slug_reserved', 'slug_taken', 'hostname_taken', 'provisioning_failed'], emits: ['platform:sys:org:created', 'platform:sys:identity:updated'] }),
    listOrgs: get('/v1/o', { summary: 'List the organizations the caller can reach', gate: 'sys:read', query: { ...PageQuery, status: Type.Optional(S.Status) }, returns: Page(S.Org) }),
    getOrg: get('/v1/org/{id}', { summary: 'One organization', gate: 'sys:read', returns: S.Org, problems: ['not_org_member', 'org_not_found'] }),
    updateOrg: put('/v1/org/{id}', { summary: 'Change an organization', gate: 'sys:org:admin', body: S.OrgChange, returns: S.Org, problems: ['not_org_member', 'org_not_found', 'immutable_field', 'hostname_taken', 'org_suspended', 'record_archived', 'platform_admin_required', 'system_record_protected'], emits: ['platform:sys:org:updated'] }),
    deleteOrg: del('/v1/org/{id}', { summary: 'Delete an organization and everything in it', gate: 'sys:org:admin', problems: ['not_org_member', 'org_not_found', 'system_record_protected'], emits: ['platform:sys:org:deleted', 'platform:sys:env:deleted'] }),
    archiveOrg: post('/v1/org/{id}/archive', { summary: 'Archive an organization', gate: 'sys:org:admin', returns: S.Org, problems: ['not_org_member', 'org_not_found', 'system_record_protected'], emits: ['platform:sys:org:archived'] }),

    createEnv: post('/v1/e', { summary: 'Create an environment', gate: 'sys:env:admin', body: S.NewEnv, returns: S.Env, problems: ['not_org_member', 'org_not_found', 'org_not_active', 'slug_invalid', 'slug_reserved', 'slug_taken', 'hostname_taken', 'provisioning_failed'], emits: ['platform:sys:env:created', 'platform:sys:policy:updated', 'platform:sys:identity:updated'] }),
    listEnvs: get('/v1/e', { summary: 'List environments', gate: 'sys:read', query: { ...PageQuery, org_id: Type.Optional(Id) }, returns: Page(S.Env), problems: ['not_org_member', 'org_not_found'] }),
    getEnv: get('/v1/env/{env_id}', { summary: 'One environment', gate: 'sys:read', returns: S.Env, problems: ['not_org_member', 'env_not_found'] }),
    updateEnv: put('/v1/env/{env_id}', { summary: 'Change an environment', gate: 'sys:env:admin', body: S.EnvChange, returns: S.Env, problems: ['not_org_member', 'env_not_found', 'immutable_field', 'hostname_taken', 'env_suspended', 'record_archived', 'platform_admin_required', 'system_record_protected'], emits: ['platform:sys:env:updated'] }),
    deleteEnv: del('/v1/env/{env_id}', { summary: 'Delete an environment', gate: 'sys:env:admin', problems: ['not_org_member', 'env_not_found', 'system_record_protected'], emits: ['platform:sys:env:deleted'] }),
    archiveEnv: post('/v1/env/{env_id}/archive', { summary: 'Archive an environment', gate: 'sys:env:admin', returns: S.Env, problems: ['not_org_member', 'env_not_found', 'system_record_protected'], emits: ['platform:sys:env:archived'] }),
    slugAvailable: get('/v1/slug-available/{slug}', { summary: 'Whether a slug is free', gate: 'sys:read', query: { kind: Type.Optional(Type.Union([Type.Literal('org'), Type.Literal('env')])), org_id: Type.Optional(Id) }, returns: Type.Object({ slug: Type.String(), available: Type.Boolean(), reason: Type.Union([Type.Null(), Type.Literal('taken'), Type.Literal('reserved'), Type.Literal('invalid')]) }) }),

    listServices: get('/v1/env/{env_id}/services', { summary: 'Services of an environment', gate: { any: ['sys:services:admin', 'sys:instances:read'] }, returns: Type.Object({ env_id: Id, services: Type.Array(S.Enablement) }), problems: ['not_org_member', 'env_not_found'] }),
    updateServices: put('/v1/env/{env_id}/services', { summary: 'Enable or disable services', gate: 'sys:services:admin', body: S.EnablementChange, returns: Type.Object({ env_id: Id, services: Type.Array(S.Enablement) }), problems: ['not_org_member', 'env_not_found', 'unknown_service', 'env_suspended', 'record_archived'], emits: ['platform:sys:service:updated'] }),
    listMemberships: get('/v1/org/{org_id}/memberships', { summary: 'Members of an organization', gate: 'sys:read', query: PageQuery, returns: Page(S.Member), problems: ['not_org_member', 'org_not_found', 'identity_unavailable'] }),

    orgBranding: get('/v1/org/{id}/branding', { summary: 'Branding of an organization', gate: 'sys:read', returns: S.Branding, problems: ['not_org_member', 'org_not_found'] }),
    putOrgBranding: put('/v1/org/{id}/branding', { summary: 'Replace the branding of an organization', gate: 'sys:org:admin', body: S.Branding, returns: S.Branding, problems: ['not_org_member', 'org_not_found', 'org_suspended', 'record_archived'] }),
    envBranding: get('/v1/env/{id}/branding', { summary: 'Branding of an environment', gate: 'sys:read', returns: S.Branding, problems: ['not_org_member', 'env_not_found'] }),
    putEnvBranding: put('/v1/env/{id}/branding', { summary: 'Replace the branding of an environment', gate: 'sys:env:admin', body: S.Branding, returns: S.Branding, problems: ['not_org_member', 'env_not_found', 'env_suspended', 'record_archived'] }),
    mergedBranding: get('/v1/env/{id}/branding/merged', { summary: 'Branding as it looks', gate: 'sys:read', returns: S.MergedBranding, problems: ['not_org_member', 'env_not_found'] }),

    resolveHostname: get('/v1/resolve/hostname', { summary: 'Where a host leads', gate: 'sys:instances:read', query: { hostname: Type.String({ maxLength: 253 }) }, returns: S.Resolved, problems: ['hostname_unresolved'] }),
    authDomain: get('/v1/env/{id}/auth-domain', { summary: 'Where people of an environment sign in', gate: 'sys:instances:read', returns: Type.Object({ env_id: Id, auth_domain: Type.Union([Type.String(), Type.Null()]), auth_url: Type.String() }), problems: ['env_not_found'] }),
    tenant: get('/v1/tenants/{env_id}', { summary: 'Snapshot of a tenant', gate: 'tenants:read', returns: S.TenantSnapshot, problems: ['env_not_found', 'tenant_service_disabled'] }),
    bootstrap: get('/v1/bootstrap', { summary: 'What the caller can reach', gate: 'sys:read', returns: S.Bootstrap, problems: ['identity_unavailable'] }),
    scopeCatalog: get('/v1/scopes/catalog', { summary: 'Every scope on the platform', gate: { public: 'Sign-in shows scope titles before anyone has a token' }, returns: Type.Object({ version: Type.String(), scopes: Type.Array(Type.Object({ scope: Type.String(), service: Type.String(), vertical: Type.String(), title: Type.String(), admin: Type.Boolean() })) }) }),
    listVerticals: get('/v1/verticals/services', { summary: 'Registered services', gate: 'sys:read', query: PageQuery, returns: Page(S.RegisteredService) }),
    registerVertical: post('/v1/verticals/register', { summary: 'Register a vertical', gate: 'sys:verticals:write', body: S.Registration, returns: Type.Object({ vertical: Type.String(), version: Type.String(), changed: Type.Boolean() }), problems: ['vertical_mismatch'], emits: ['platform:sys:vertical:registered'] }),

    listAudit: get('/v1/audit', {
      summary: 'The audit trail',
      gate: 'audit:read',
      query: { service: Type.Optional(Type.String()), action: Type.Optional(Type.String()), env_id: Type.Optional(Id), limit: Type.Optional(Type.Integer({ minimum: 1, maximum: 500 })), after_ts: Type.Optional(Type.String()), after_id: Type.Optional(Id) },
      returns: Type.Object({ items: Type.Array(S.Audit), next: Type.Union([Type.Object({ after_ts: Type.String(), after_id: Id }), Type.Null()]) }),
      problems: ['keyset_incomplete'],
    }),
    recordAudit: post('/v1/audit', { summary: 'Store one audit event', gate: 'audit:write', body: S.NewAudit, returns: Type.Object({ audit_id: Id }), status: 201, emits: ['platform:sys:audit:recorded'] }),

    policySnapshot: get('/v1/internal/policy', { summary: 'Policy data of (env, service)', gate: policyGate, query: PolicyRow, returns: Type.Object({ sets: Type.Array(S.PolicySet), relations: Type.Array(S.Relation), attributes: Type.Array(S.Attribute) }), hidden: true }),
    policyUpsertSet: post('/v1/internal/policy/sets', { summary: 'Store a policy set', gate: policyGate, body: Type.Object({ ...PolicyRow, name: Type.String(), policies: Type.String(), policy_set_id: Type.Optional(Id), mode: Type.Optional(Type.Union([Type.Literal('shadow'), Type.Literal('enforced')])), updated_by: Type.String() }), returns: S.PolicySet, problems: ['platform_origin_row', 'policy_row_not_found'], hidden: true, emits: ['platform:sys:policy:updated'] }),
    policyUpsertRelation: post('/v1/internal/policy/relations', { summary: 'Store a relation', gate: policyGate, body: Type.Object({ ...PolicyRow, subject: Type.String(), relation: Type.String(), object: Type.String() }), returns: S.Relation, hidden: true }),
    policyUpsertAttribute: post('/v1/internal/policy/attributes', { summary: 'Store an attribute', gate: policyGate, body: Type.Object({ ...PolicyRow, principal: Type.String(), key: Type.String(), value: S.Attribute.properties.value }), returns: S.Attribute, hidden: true }),
    policyRemove: post('/v1/internal/policy/remove', { summary: 'Remove a policy row', gate: policyGate, body: Type.Object({ ...PolicyRow, kind: Type.Union([Type.Literal('policy-sets'), Type.Literal('relations'), Type.Literal('attributes')]), id: Type.String(), updated_by: Type.String() }), problems: ['platform_origin_row', 'policy_row_not_found'], hidden: true, emits: ['platform:sys:policy:updated'] }),
  },

  jobs: {
    forgetAudit: { summary: 'Delete audit events past their retention', every: '1h', runs: 'fleet' },
  },
});
