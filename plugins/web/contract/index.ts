import { defineContract, get, raw, Type } from '@platform/sdk/contract';

const page = 'A page and its assets are the same for everybody; data comes through the gateway';

/** Serves the operator console's bundle (day-one, Names). */
export const web = defineContract({
  id: 'web',
  title: 'Console host',
  placement: { tier: 50 },
  unversioned: {
    '/{*path}': 'Pages for people',
    '/console.json': 'G-CON-01',
  },
  essential: true,
  hosts: ['console'],
  actions: {},
  problems: {
    not_found: { status: 404, title: 'Nothing is here', retry: 'never' },
    method_not_allowed: { status: 405, title: 'The path does not know this method', retry: 'never' },
  },
  events: {},
  routes: {
    consoleConfig: get('/console.json', {
      summary: 'Where the console finds its gateway',
      gate: { public: page },
      hidden: true,
      returns: Type.Object({
        gateway: Type.String(),
        services: Type.Object({ registry: Type.String(), identity: Type.String(), app_store: Type.String() }),
        live_types: Type.Array(Type.String()),
        system: Type.Object({ org_id: Type.String(), env_id: Type.String() }),
      }),
    }),
    asset: raw('/{*path}', {
      summary: 'The console',
      idempotency: { none: 'Nothing is made here: it is read alone' },
      gate: { public: page },
      hidden: true,
    }),
  },
});
