import { defineContract, get, listener, Type } from '@platform/sdk/contract';

const Mapping = Type.Object({
  hostname: Type.String(),
  env_id: Type.Union([Type.String(), Type.Null()]),
  app_id: Type.Union([Type.String(), Type.Null()]),
  app_instance_id: Type.Union([Type.String(), Type.Null()]),
  service: Type.String(),
  org_id: Type.Union([Type.String(), Type.Null()]),
  status: Type.String(),
  source: Type.Union([Type.Literal('platform'), Type.Literal('registry'), Type.Literal('custom')]),
  resolved_at: Type.String(),
  expires_at: Type.String(),
});

/** The platform's single way in: TLS on the edge port, host routing, header hygiene (doc3; G-PROXY). */
export const ingress = defineContract({
  id: 'proxy',
  title: 'Ingress',
  placement: { tier: 20, singleton: true, pin: 'edge' },
  essential: true,
  uses: { acme: ['acme:certificates:fetch'], sys: ['sys:instances:read'] },
  capabilities: ['backends', 'key-value'],
  config: Type.Object({
    httpsPort: Type.Integer({ env: 'PLATFORM_PROXY_HTTPS_PORT', default: 8443, minimum: 0, maximum: 65535, description: 'Port of the ingress; 0 takes any free one' }),
    address: Type.String({ env: 'PLATFORM_PROXY_ADDRESS', default: '127.0.0.1', description: 'Address the ingress listens on' }),
    connections: Type.Integer({ env: 'PLATFORM_PROXY_CONNECTIONS', default: 10_000, minimum: 16, maximum: 1_000_000, description: 'Connections that are open at the edge' }),
    connectionsPerAddress: Type.Integer({
      env: 'PLATFORM_PROXY_CONNECTIONS_PER_ADDRESS',
      default: 8_192,
      minimum: 1,
      maximum: 1_000_000,
      description: 'How many of them come from one address (of IPv6: one /64)',
    }),
    bodies: Type.Integer({ env: 'PLATFORM_PROXY_BODIES', default: 2_048, minimum: 1, maximum: 100_000, description: 'Request bodies that are being received, each with at most 64 KiB in memory' }),
    bodiesPerAddress: Type.Integer({
      env: 'PLATFORM_PROXY_BODIES_PER_ADDRESS',
      default: 512,
      minimum: 1,
      maximum: 100_000,
      description: 'How many of them come from one address; one more ends its oldest',
    }),
    bodyTimeoutS: Type.Integer({ env: 'PLATFORM_PROXY_BODY_TIMEOUT_S', default: 30, minimum: 1, maximum: 600, description: 'Seconds for a body to come, or for a large one to move' }),
  }),
  actions: {
    'proxy:backends:read': { title: 'See backends of the ingress' },
    'proxy:mappings:read': { title: 'See host mappings of the ingress' },
  },
  problems: {},
  events: {},
  routes: {
    edge: listener('edge', { summary: 'The TLS listener browsers reach', gate: { public: 'Transport only; every backend decides for itself' }, port: 'httpsPort', address: 'address', hidden: true }),
    mappings: get('/v1/prox/mappings', { summary: 'Host mappings in the cache', gate: 'proxy:mappings:read', returns: Type.Object({ items: Type.Array(Mapping), next_cursor: Type.Null() }) }),
    backends: get('/v1/prox/backends', {
      summary: 'Backends in rotation',
      gate: 'proxy:backends:read',
      returns: Type.Object({ items: Type.Array(Type.Object({ service: Type.String(), ip: Type.String(), port: Type.Integer() })) }),
    }),
  },
  pages: {
    mappings: {
      kind: 'table',
      title: 'Host mappings',
      scope: 'platform',
      source: 'mappings',
      key: 'hostname',
      columns: [
        { field: 'hostname', label: 'Host' },
        { field: 'service', label: 'Service', as: 'code' },
        { field: 'source', label: 'Source', as: 'status', tones: { platform: 'muted', registry: 'info', custom: 'ok' } },
        { field: 'expires_at', label: 'Cached until', as: 'datetime' },
      ],
    },
  },
});
