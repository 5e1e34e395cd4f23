import { get, post, put, Id, Page, PageQuery, Type } from '@platform/sdk/contract';
import { Enablement, EnablementChange, RegisteredService, Registration } from '../schema/service.ts';

/** Services of an environment, and what verticals register (G-SYS-05, G-SYS-12). */
export const serviceRoutes = {
  listServices: get('/v1/env/{env_id}/services', {
    summary: 'Services of an environment',
    gate: { any: ['sys:services:admin', 'sys:instances:read'] },
    returns: Type.Object({ env_id: Id, services: Type.Array(Enablement) }),
    problems: ['not_org_member', 'env_not_found'],
  }),
  updateServices: put('/v1/env/{env_id}/services', {
    summary: 'Enable or disable services',
    gate: 'sys:services:admin',
    body: EnablementChange,
    returns: Type.Object({ env_id: Id, services: Type.Array(Enablement) }),
    problems: [
      'not_org_member',
      'env_not_found',
      'unknown_service',
      'service_required',
      'env_suspended',
      'org_suspended',
      'record_archived',
    ],
    emits: ['platform:sys:service:updated'],
  }),
  scopeCatalog: get('/v1/scopes/catalog', {
    summary: 'Every scope on the platform',
    gate: { public: 'Sign-in shows scope titles before anyone has a token' },
    returns: Type.Object({
      version: Type.String(),
      scopes: Type.Array(
        Type.Object({ scope: Type.String(), service: Type.String(), vertical: Type.String(), title: Type.String(), admin: Type.Boolean() }),
      ),
    }),
  }),
  listVerticals: get('/v1/verticals/services', {
    summary: 'Registered services',
    gate: 'sys:read',
    query: PageQuery,
    returns: Page(RegisteredService),
  }),
  registerVertical: post('/v1/verticals/register', {
    summary: 'Register a vertical',
    gate: 'sys:verticals:write',
    body: Registration,
    returns: Type.Object({ vertical: Type.String(), version: Type.String(), changed: Type.Boolean() }),
    problems: ['vertical_mismatch'],
    emits: ['platform:sys:vertical:registered'],
  }),
};
