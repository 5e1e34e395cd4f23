import { del, get, Id, Page, PageQuery, post, put, Type } from '@platform/sdk/contract';
import { Status } from '../schema/field.ts';
import { Env, EnvChange, EnvironmentState, NewEnv, NewOrg, Org, OrgChange, OrgDomain } from '../schema/tenant.ts';

const unproven = ['custom_domain_not_found', 'domain_not_verified', 'hostname_taken'] as const;

/** Organizations and environments (G-SYS-01, G-SYS-02). */
export const tenantRoutes = {
  createOrg: post('/v1/o', {
    summary: 'Create an organization',
    gate: 'sys:org:admin',
    body: NewOrg,
    returns: Org,
    problems: ['slug_invalid', 'slug_reserved', 'slug_taken', 'hostname_taken', 'provisioning_failed'],
    emits: ['platform:sys:org:created', 'platform:sys:identity:updated'],
  }),
  listOrgs: get('/v1/o', { summary: 'List the organizations the caller can reach', gate: 'sys:read', query: { ...PageQuery, status: Type.Optional(Status) }, returns: Page(Org) }),
  getOrg: get('/v1/org/{id}', { summary: 'One organization', gate: 'sys:read', returns: Org, problems: ['not_org_member', 'org_not_found'] }),
  updateOrg: put('/v1/org/{id}', {
    summary: 'Change an organization',
    gate: 'sys:org:admin',
    body: OrgChange,
    returns: Org,
    problems: ['not_org_member', 'org_not_found', 'immutable_field', 'hostname_taken', 'org_suspended', 'record_archived', 'platform_admin_required', 'system_record_protected'],
    emits: ['platform:sys:org:updated', 'platform:sys:env:updated', 'platform:sys:app:updated'],
  }),
  deleteOrg: del('/v1/org/{id}', {
    summary: 'Delete an organization and everything in it',
    gate: 'sys:org:admin',
    problems: ['not_org_member', 'org_not_found', 'system_record_protected'],
    emits: ['platform:sys:org:deleted', 'platform:sys:env:deleted'],
  }),
  archiveOrg: post('/v1/org/{id}/archive', {
    summary: 'Archive an organization',
    gate: 'sys:org:admin',
    returns: Org,
    problems: ['not_org_member', 'org_not_found', 'system_record_protected'],
    emits: ['platform:sys:org:archived'],
  }),
  createEnv: post('/v1/e', {
    summary: 'Create an environment',
    gate: 'sys:env:admin',
    body: NewEnv,
    returns: Env,
    problems: ['not_org_member', 'org_not_found', 'org_not_active', 'slug_invalid', 'slug_reserved', 'slug_taken', 'hostname_taken', 'provisioning_failed'],
    emits: ['platform:sys:env:created', 'platform:sys:policy:updated', 'platform:sys:identity:updated'],
  }),
  listEnvs: get('/v1/e', { summary: 'List environments', gate: 'sys:read', query: { ...PageQuery, org_id: Type.Optional(Id) }, returns: Page(Env), problems: ['not_org_member', 'org_not_found'] }),
  getEnv: get('/v1/env/{env_id}', { summary: 'One environment', gate: 'sys:read', returns: Env, problems: ['not_org_member', 'env_not_found'] }),
  updateEnv: put('/v1/env/{env_id}', {
    summary: 'Change an environment',
    gate: 'sys:env:admin',
    body: EnvChange,
    returns: Env,
    problems: ['not_org_member', 'env_not_found', 'immutable_field', 'hostname_taken', 'env_suspended', 'org_suspended', 'record_archived', 'platform_admin_required', 'system_record_protected'],
    emits: ['platform:sys:env:updated'],
  }),
  deleteEnv: del('/v1/env/{env_id}', {
    summary: 'Delete an environment',
    gate: 'sys:env:admin',
    problems: ['not_org_member', 'env_not_found', 'system_record_protected'],
    emits: ['platform:sys:env:deleted'],
  }),
  archiveEnv: post('/v1/env/{env_id}/archive', {
    summary: 'Archive an environment',
    gate: 'sys:env:admin',
    returns: Env,
    problems: ['not_org_member', 'env_not_found', 'system_record_protected'],
    emits: ['platform:sys:env:archived'],
  }),
  listDomains: get('/v1/org/{id}/domains', {
    summary: "Domains of an organization outside the platform's, and the DNS records that prove them",
    gate: 'sys:read',
    returns: Page(OrgDomain),
    problems: ['not_org_member', 'org_not_found', 'identity_unavailable'],
    hidden: true,
  }),
  verifyDomain: post('/v1/org/{id}/domains/{domain}/verify', {
    summary: 'Look for the DNS record of a domain; it routes from then on',
    gate: 'sys:org:admin',
    returns: OrgDomain,
    problems: ['not_org_member', 'org_not_found', 'identity_unavailable', ...unproven],
    hidden: true,
  }),
  domainRows: get('/v1/admin/domains', {
    summary: "Domains of the environment's organization",
    gate: 'sys:read',
    env: 'target',
    returns: Page(OrgDomain),
    problems: ['not_org_member', 'env_not_found', 'org_not_found', 'identity_unavailable'],
    hidden: true,
  }),
  verifyDomainRow: post('/v1/admin/domains/{domain}/verify', {
    summary: 'Verify',
    gate: 'sys:org:admin',
    env: 'target',
    returns: OrgDomain,
    problems: ['not_org_member', 'env_not_found', 'org_not_found', 'identity_unavailable', ...unproven],
    hidden: true,
  }),
  environmentState: get('/v1/internal/environments/{env_id}/state', {
    summary: 'Whether an environment takes changes',
    gate: 'sys:environments:read',
    returns: Type.Object({ state: EnvironmentState }),
    hidden: true,
  }),
  slugAvailable: get('/v1/slug-available/{slug}', {
    summary: 'Whether a slug is free',
    gate: 'sys:read',
    query: { kind: Type.Optional(Type.Union([Type.Literal('org'), Type.Literal('env')])), org_id: Type.Optional(Id) },
    returns: Type.Object({ slug: Type.String(), available: Type.Boolean(), reason: Type.Union([Type.Null(), Type.Literal('taken'), Type.Literal('reserved'), Type.Literal('invalid')]) }),
    problems: ['org_required', 'not_org_member', 'org_not_found', 'identity_unavailable'],
  }),
};
