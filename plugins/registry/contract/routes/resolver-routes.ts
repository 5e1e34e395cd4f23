import { get, Id, Type } from '@platform/sdk/contract';
import { Bootstrap, Resolved } from '../schema/resolver.ts';
import { TenantSnapshot } from '../schema/tenant.ts';

/** Hosts, tenants and the bootstrap of a console, read only (G-SYS-10, G-SYS-11, G-SYS-14). */
export const resolverRoutes = {
  resolveHostname: get('/v1/resolve/hostname', {
    summary: 'Where a host leads',
    gate: 'sys:instances:read',
    query: { hostname: Type.String({ maxLength: 253 }) },
    returns: Resolved,
    problems: ['hostname_unresolved'],
  }),
  authDomain: get('/v1/env/{id}/auth-domain', {
    summary: 'Where people of an environment sign in',
    gate: 'sys:instances:read',
    returns: Type.Object({ env_id: Id, auth_domain: Type.Union([Type.String(), Type.Null()]), auth_url: Type.String() }),
    problems: ['env_not_found'],
  }),
  tenant: get('/v1/tenants/{env_id}', { summary: 'Snapshot of a tenant', gate: 'tenants:read', returns: TenantSnapshot, problems: ['env_not_found', 'tenant_service_disabled'] }),
  bootstrap: get('/v1/bootstrap', { summary: 'What the caller can reach', gate: 'sys:read', returns: Bootstrap, problems: ['identity_unavailable'] }),
};
