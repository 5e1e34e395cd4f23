import { defineContract, get, listener, put, Type } from '@platform/sdk/contract';
import { pages } from './pages.ts';
import { ChosenSettings, SettingsSeen } from './settings.ts';

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

const Backend = Type.Object({
  backend: Type.String(),
  service: Type.String(),
  ip: Type.String(),
  port: Type.Integer(),
  status: Type.String(),
  health_age_s: Type.Union([Type.Integer(), Type.Null()]),
  suspect: Type.Boolean(),
  suspect_until: Type.Union([Type.String(), Type.Null()]),
  in_flight: Type.Integer(),
  pool_idle: Type.Integer(),
});

const Count = Type.Integer();
const Window = Type.Object({
  at: Type.String(),
  requests: Count,
  connections: Count,
  piped: Count,
  status_2xx: Count,
  status_3xx: Count,
  status_4xx: Count,
  status_5xx: Count,
  p50_ms: Type.Number(),
  p95_ms: Type.Number(),
  p99_ms: Type.Number(),
  post_quantum_percent: Type.Number(),
});

const Finding = Type.Object({
  finding_id: Type.String(),
  at: Type.String(),
  hostname: Type.String(),
  env_id: Type.Union([Type.String(), Type.Null()]),
  ip: Type.String(),
  method: Type.String(),
  outcome: Type.Union([Type.Literal('blocked'), Type.Literal('passed')]),
  threat: Type.String(),
  place: Type.String(),
  name: Type.String(),
  reason: Type.String(),
  excerpt: Type.String(),
  correlation_id: Type.String(),
});

/** The platform's single way in: TLS on the edge port, host routing, header hygiene (doc3; G-PROXY). */
export const ingress = defineContract({
  id: 'proxy',
  title: 'Ingress',
  placement: { tier: 20, singleton: true, pin: 'edge' },
  forApplications: false,
  essential: true,
  uses: { acme: ['acme:certificates:fetch'], sys: ['sys:instances:read', 'sys:read'] },
  capabilities: ['backends', 'key-value'],
  config: Type.Object({
    httpsPort: Type.Integer({
      env: 'PLATFORM_PROXY_HTTPS_PORT',
      default: 8443,
      minimum: 0,
      maximum: 65535,
      description: 'Port of the ingress; 0 takes any free one',
    }),
    address: Type.String({ env: 'PLATFORM_PROXY_ADDRESS', default: '127.0.0.1', description: 'Address the ingress listens on' }),
    connections: Type.Integer({
      env: 'PLATFORM_PROXY_CONNECTIONS',
      default: 10_000,
      minimum: 16,
      maximum: 1_000_000,
      description: 'Connections that are open at the edge',
    }),
    connectionsPerAddress: Type.Integer({
      env: 'PLATFORM_PROXY_CONNECTIONS_PER_ADDRESS',
      default: 8_192,
      minimum: 1,
      maximum: 1_000_000,
      description: 'How many of them come from one address (of IPv6: one /64)',
    }),
    bodies: Type.Integer({
      env: 'PLATFORM_PROXY_BODIES',
      default: 2_048,
      minimum: 1,
      maximum: 100_000,
      description: 'Request bodies that are being received, each with at most 64 KiB in memory',
    }),
    bodiesPerAddress: Type.Integer({
      env: 'PLATFORM_PROXY_BODIES_PER_ADDRESS',
      default: 512,
      minimum: 1,
      maximum: 100_000,
      description: 'How many of them come from one address; one more ends its oldest',
    }),
    unread: Type.Integer({
      env: 'PLATFORM_PROXY_UNREAD',
      default: 2_048,
      minimum: 1,
      maximum: 100_000,
      description: 'Answers whose client has taken nothing for a second, each with at most 128 KiB in memory',
    }),
    unreadPerAddress: Type.Integer({
      env: 'PLATFORM_PROXY_UNREAD_PER_ADDRESS',
      default: 512,
      minimum: 1,
      maximum: 100_000,
      description: 'How many of them come from one address; one more ends its oldest',
    }),
    bodyTimeoutS: Type.Integer({
      env: 'PLATFORM_PROXY_BODY_TIMEOUT_S',
      default: 30,
      minimum: 1,
      maximum: 600,
      description: 'Seconds for a body to come, or for a large one to move',
    }),
    headerTimeoutS: Type.Integer({
      env: 'PLATFORM_PROXY_HEADER_TIMEOUT_S',
      default: 10,
      minimum: 1,
      maximum: 120,
      description: 'Seconds for a ClientHello, for a handshake, for a request header, and to the first stream of HTTP/2',
    }),
    certificates: Type.Integer({
      env: 'PLATFORM_PROXY_CERTIFICATES',
      default: 10_000,
      minimum: 16,
      maximum: 1_000_000,
      description: 'Certificates of hosts in memory; one more takes the place of the one that nobody has asked for the longest',
    }),
    layer7: Type.Boolean({
      env: 'PLATFORM_PROXY_L7',
      default: true,
      description: 'Whether TLS ends at the ingress; off pipes every connection to its backend',
    }),
    piped: Type.Union([Type.Literal('workloads'), Type.Literal('names')], {
      env: 'PLATFORM_PROXY_L4',
      default: 'workloads',
      description:
        "Which connections from private addresses to the platform's own names are piped: those of workloads, known by a post-quantum key exchange alone, or all",
    }),
    httpPort: Type.Optional(
      Type.Integer({
        env: 'PLATFORM_PROXY_HTTP_PORT',
        minimum: 0,
        maximum: 65535,
        description: 'Port of ACME challenges; 0 opens none. 80 in production, none in development when absent',
      }),
    ),
    managementPort: Type.Integer({
      env: 'PLATFORM_PROXY_MANAGEMENT_PORT',
      default: 7020,
      minimum: 0,
      maximum: 65535,
      description: 'Plain-HTTP port of the management plane; 0 takes any free one',
    }),
    managementAddress: Type.String({
      env: 'PLATFORM_PROXY_MANAGEMENT_ADDRESS',
      default: '127.0.0.1',
      description: 'Private address the management plane listens on',
    }),
    waf: Type.Union([Type.Literal('off'), Type.Literal('detect'), Type.Literal('block'), Type.Literal('on')], {
      env: 'PLATFORM_PROXY_WAF',
      default: 'off',
      description: 'Screening of requests where an environment says nothing: off, detect, or block (on)',
    }),
    wafLargeBodies: Type.Boolean({
      env: 'PLATFORM_PROXY_WAF_LARGE_BODIES',
      default: true,
      description:
        'Whether bodies of more than 64 KiB are screened to their end where an environment says nothing; off screens how they begin',
    }),
    rateLimit: Type.Boolean({
      env: 'PLATFORM_PROXY_RATE_LIMIT',
      default: false,
      description: 'Whether requests of one address are limited where an environment says nothing',
    }),
    rateLimitRps: Type.Integer({
      env: 'PLATFORM_PROXY_RATE_LIMIT_RPS',
      default: 100,
      minimum: 1,
      maximum: 1_000_000,
      description: 'Requests per second of one address (of IPv6: one /64); twice as many at once',
    }),
  }),
  actions: {
    'proxy:backends:read': { title: 'See backends of the ingress' },
    'proxy:mappings:read': { title: 'See host mappings of the ingress' },
    'proxy:traffic:read': { title: 'See traffic of the ingress' },
    'proxy:findings:read': { title: 'See what screening found' },
    'proxy:settings:read': { title: 'See what an environment asks of the ingress' },
    'proxy:settings:write': { title: 'Change screening and rate limits of an environment' },
  },
  problems: {
    waf_blocked: { status: 403, title: 'The request was refused by screening', retry: 'never' },
    rate_limited: { status: 429, title: 'Too many requests from this address', retry: 'later' },
    misdirected: { status: 421, title: 'This listener does not serve that host', retry: 'never' },
  },
  events: {},
  routes: {
    edge: listener('edge', {
      summary: 'The TLS listener browsers reach',
      gate: { public: 'Transport only; every backend decides for itself' },
      port: 'httpsPort',
      address: 'address',
      hidden: true,
    }),
    challenges: listener('challenges', {
      summary: 'The plain port on which certificate authorities outside look for answers to challenges',
      gate: { public: 'ACME validation comes without a credential' },
      hidden: true,
    }),
    management: listener('management', {
      summary: 'The plain port of the management plane',
      gate: { public: 'Peers of private addresses alone reach it' },
      hidden: true,
    }),
    mappings: get('/v1/prox/mappings', {
      summary: 'Host mappings in the cache',
      gate: 'proxy:mappings:read',
      returns: Type.Object({ items: Type.Array(Mapping), next_cursor: Type.Null() }),
    }),
    backends: get('/v1/prox/backends', {
      summary: 'Backends in rotation',
      gate: 'proxy:backends:read',
      returns: Type.Object({ items: Type.Array(Backend) }),
    }),
    figures: get('/v1/prox/figures', {
      summary: 'Counters and gauges of the edge',
      gate: 'proxy:traffic:read',
      returns: Type.Record(Type.String(), Type.Number()),
    }),
    traffic: get('/v1/prox/traffic', {
      summary: 'What went through the edge of late, in windows of ten seconds',
      gate: 'proxy:traffic:read',
      returns: Type.Object({ items: Type.Array(Window) }),
    }),
    findings: get('/v1/prox/findings', {
      summary: 'What screening found of late, newest first',
      gate: 'proxy:findings:read',
      returns: Type.Object({ items: Type.Array(Finding), next_cursor: Type.Null() }),
    }),
    settings: get('/v1/prox/settings', {
      summary: 'What an environment asks of the ingress, and what holds there',
      gate: { any: ['proxy:settings:read', 'proxy:settings:write'] },
      env: 'target',
      returns: SettingsSeen,
    }),
    putSettings: put('/v1/prox/settings', {
      summary: 'Save settings',
      gate: 'proxy:settings:write',
      env: 'target',
      body: ChosenSettings,
      returns: SettingsSeen,
    }),
  },
  pages,
});
