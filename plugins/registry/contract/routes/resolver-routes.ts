import { get, Id, Type } from '@platform/sdk/contract';
import { AppAuthMode, AppDomain, AppScopes, Bootstrap, Resolved } from '../schema/resolver.ts';
import { TenantSnapshot } from '../schema/tenant.ts';

const ofId = { id: Id };

const Hostname = Type.String({ maxLength: 253 });
/** What a person is told who is no member of the tenant, or whose member cannot be asked for. */
const reachable = ['not_org_member', 'identity_unavailable'] as const;
const byInstance = { app_instance_id: Type.Optional(Id), hostname: Type.Optional(Hostname) };

/** Hosts, tenants and the bootstrap of a console, read only (G-SYS-10, G-SYS-11, G-SYS-14). */
export const resolverRoutes = {
  resolveHostname: get('/v1/resolve/hostname', {
    summary: 'Where a host leads',
    gate: 'sys:instances:read',
    query: { hostname: Hostname },
    returns: Resolved,
    problems: [...reachable, 'hostname_unresolved'],
  }),
  appInstanceScopes: get('/v1/app-instance/scopes', {
    summary: 'Scopes and services an app instance may use',
    gate: 'sys:instances:read',
    query: byInstance,
    returns: AppScopes,
    problems: [...reachable, 'selector_required', 'app_instance_not_found'],
  }),
  appInstanceAuthMode: get('/v1/app-instance/auth-mode', {
    summary: 'Who may sign in to an app instance',
    gate: 'sys:instances:read',
    query: { ...byInstance, client_id: Type.Optional(Type.String({ maxLength: 200 })) },
    returns: AppAuthMode,
    problems: [...reachable, 'selector_required', 'app_instance_not_found'],
  }),
  authDomain: get('/v1/env/{id}/auth-domain', {
    params: ofId,
    summary: 'Where people of an environment sign in',
    gate: 'sys:instances:read',
    returns: Type.Object({ env_id: Id, auth_domain: Type.Union([Type.String(), Type.Null()]), auth_url: Type.String() }),
    problems: [...reachable, 'env_not_found'],
  }),
  appCustomDomain: get('/v1/env/{id}/app-custom-domain', {
    params: ofId,
    summary: 'The custom domain of an app instance',
    gate: 'sys:instances:read',
    query: { app_instance_id: Id },
    returns: AppDomain,
    problems: [...reachable, 'env_not_found', 'app_instance_not_found'],
  }),
  tenant: get('/v1/tenants/{env_id}', {
    params: { env_id: Id },
    summary: 'Snapshot of a tenant',
    gate: 'tenants:read',
    returns: TenantSnapshot,
    problems: ['env_not_found', 'service_disabled'],
  }),
  bootstrap: get('/v1/bootstrap', {
    summary: 'What the caller can reach',
    gate: 'sys:read',
    returns: Bootstrap,
    problems: ['identity_unavailable'],
  }),
};
