import { get, Id, put, Type } from '@platform/sdk/contract';
import { Enablement, EnablementChange } from '../schema/service.ts';

const ofEnv = { env_id: Id };

/** Services of an environment, and every scope there is (G-SYS-05, G-SYS-12). */
export const serviceRoutes = {
  listServices: get('/v1/env/{env_id}/services', {
    params: ofEnv,
    summary: 'Services of an environment',
    gate: { any: ['sys:services:admin', 'sys:instances:read'] },
    returns: Type.Object({ env_id: Id, services: Type.Array(Enablement) }),
    problems: ['not_org_member', 'env_not_found'],
  }),
  updateServices: put('/v1/env/{env_id}/services', {
    params: ofEnv,
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
};
