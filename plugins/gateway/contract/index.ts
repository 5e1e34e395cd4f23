import { defineContract, get, Id, post, raw, socket, subscribe, Type } from '@platform/sdk/contract';
import { delegationRoutes, PROXY_BYTES } from './routes/delegation-routes.ts';
import { comesToTheSame, logged, readAlone } from './idempotency.ts';

const cookie = 'The session cookie is checked by the gateway itself, before anything else';
const nobody = 'A person without a session begins or ends one here';
const everyone = { delivery: 'process' } as const;

const PushDevice = Type.Object({
  push_id: Id,
  platform: Type.Union([Type.Literal('ios'), Type.Literal('android'), Type.Literal('web')]),
  device_token: Type.String(),
});

/** The one backend of browser applications: sessions, sign-in, the proxy path, live events (doc2; G-BFF). Tokens stay here. */
export const gateway = defineContract({
  id: 'bff',
  title: 'Browser gateway',
  placement: { tier: 50 },
  unversioned: {
    '/auth/': 'C31',
    '/bff/': 'C31',
    '/delegate/': 'C31',
    '/subscribe': 'C31',
    '/ws': 'C31',
    '/proxy/': 'C31',
    '/audit': 'C31',
    '/metrics': 'G-BFF-10',
  },
  essential: true,
  capabilities: ['key-value', 'backends'],
  folders: ['bff'],
  uses: { sys: ['sys:read', 'sys:instances:read', 'sys:invitations:check'], auth: ['auth:membership:read'] },
  workloads: {
    /** Acts for people in other environments (GWY-072). */
    delegator: { bff: ['delegate:read'], auth: ['scim:read', 'scim:write'], sys: ['sys:instances:read'] },
    /** Says for an operator what only the platform may say (BUS-077). */
    producer: { bus: ['bus:produce'] },
  },
  aliases: { '/readiness': '/v1/readiness' },
  config: Type.Object({
    csrf: Type.Boolean({ env: 'PLATFORM_BFF_CSRF', default: true, description: 'Whether mutations must carry x-bff-csrf' }),
    idleTtlS: Type.Integer({
      env: 'PLATFORM_BFF_IDLE_TTL_S',
      default: 604_800,
      minimum: 60,
      description: 'Seconds a session lives unused',
    }),
    absoluteTtlS: Type.Integer({
      env: 'PLATFORM_BFF_ABSOLUTE_TTL_S',
      default: 2_592_000,
      minimum: 60,
      description: 'Seconds a session lives at most',
    }),
    hostnameFallback: Type.Boolean({
      env: 'PLATFORM_BFF_HOSTNAME_FALLBACK',
      default: false,
      description: 'Whether the host name tells the application when no ingress did',
    }),
    streams: Type.Integer({
      env: 'PLATFORM_BFF_STREAMS',
      default: 10_000,
      minimum: 1,
      maximum: 1_000_000,
      description: 'Live connections of browsers that a gateway process keeps',
    }),
    streamsPerSession: Type.Integer({
      env: 'PLATFORM_BFF_STREAMS_PER_SESSION',
      default: 2_048,
      minimum: 1,
      maximum: 100_000,
      description: 'How many of them belong to one session',
    }),
    partitionedCookie: Type.Boolean({
      env: 'PLATFORM_BFF_PARTITIONED_COOKIE',
      default: false,
      description: 'Whether the session cookie is kept apart per embedding site (CHIPS)',
    }),
  }),

  keys: {
    sessions: {
      use: 'seal',
      documented: 'PLATFORM_BFF_ENCRYPTION_KEY',
      description: 'Key of stored sessions: 32 bytes in base64, or a secret reference',
      previous: 'PLATFORM_BFF_PREVIOUS_KEYS',
      file: 'bff.key',
    },
  },

  actions: {
    'bff:devices:read': { title: 'Read the devices that people want to be reached on', principals: ['machine'], bound: true },
    'delegate:read': { title: 'See who is acted for', grants: 'admin' },
    'delegate:write': { title: 'Ask customers to be acted for', grants: 'admin' },
  },
  problems: {
    bad_return_to: { status: 400, title: 'return_to is not a path of the application', retry: 'never' },
    state_mismatch: { status: 400, title: 'This sign-in was not started here, or took too long', retry: 'never' },
    session_required: { status: 401, title: 'Sign in first', retry: 'never' },
    app_binding_mismatch: { status: 401, title: 'The session belongs to another application', retry: 'never' },
    sign_in_refused: { status: 401, title: 'The sign-in was refused', retry: 'never' },
    claims_undecodable: { status: 401, title: 'The identity could not be read', retry: 'never', log: 'warn' },
    auth_env_mismatch: { status: 403, title: 'The identity belongs to another environment', retry: 'never', log: 'warn' },
    group_gate_denied: { status: 403, title: 'This application is not open to you', retry: 'never' },
    signup_disabled: { status: 403, title: 'This application takes no sign-ups', retry: 'never' },
    origin_denied: { status: 403, title: 'The request comes from another site', retry: 'never', log: 'warn' },
    csrf_mismatch: { status: 403, title: 'x-bff-csrf does not fit the session', retry: 'never' },
    not_whitelisted: { status: 403, title: 'The application may not call this', retry: 'never' },
    delegation_not_approved: { status: 403, title: 'The customer has not allowed this, or no longer does', retry: 'never' },
    delegation_refused: { status: 403, title: 'Nobody can be acted for here', retry: 'never' },
    app_unknown: { status: 404, title: 'No application answers on this host', retry: 'never' },
    session_not_found: { status: 404, title: 'No such session', retry: 'never' },
    action_not_found: { status: 404, title: 'No such action', retry: 'never' },
    delegation_not_found: { status: 404, title: 'No such delegation', retry: 'never' },
    customer_not_found: { status: 404, title: 'No such customer', retry: 'never' },
    no_live_stream: { status: 409, title: 'The session has no live stream', retry: 'never' },
    too_many_devices: { status: 409, title: 'The session has too many devices', retry: 'never' },
    identity_unavailable: { status: 502, title: 'The identity service did not answer', retry: 'later', log: 'warn' },
    delegator_unavailable: { status: 502, title: 'The gateway cannot act in other environments now', retry: 'later', log: 'warn' },
  },
  events: {},

  consumes: {
    /** The gateway acts on these itself; the other families are those of the contracts that run here and of what is registered. */
    liveSys: subscribe('*', { family: 'sys', ...everyone }),
    accessChanged: subscribe('platform:sys:identity:updated', { family: 'policy', ...everyone }),
    /** Durable: a revocation that came while no gateway ran still ends the stored session (GWY-092, H-10). */
    'bff-session-reaper': subscribe('platform:auth:session:revoked', { family: 'identity', delivery: 'fleet' }),
  },

  routes: {
    login: raw('/auth/login', { summary: 'Begin a sign-in', idempotency: readAlone, gate: { public: nobody } }),
    signUp: raw('/auth/sign-up', { summary: 'Begin a sign-up', idempotency: readAlone, gate: { public: nobody } }),
    callback: raw('/auth/callback', { summary: 'Finish a sign-in', idempotency: readAlone, gate: { public: nobody } }),
    session: raw('/auth/session', { summary: 'Who is signed in', idempotency: readAlone, gate: { public: cookie } }),
    signOut: raw('/auth/sign-out', { summary: 'End the session', idempotency: comesToTheSame, gate: { public: cookie }, limit: 1_024 }),
    refresh: raw('/auth/refresh', { summary: 'Renew the tokens of the session', idempotency: comesToTheSame, gate: { public: cookie } }),
    sessions: raw('/v1/auth/sessions', {
      summary: 'List, or end all other, sessions of the caller',
      idempotency: readAlone,
      gate: { public: cookie },
    }),
    oneSession: raw('/v1/auth/sessions/{id}', { summary: 'One session of the caller', idempotency: readAlone, gate: { public: cookie } }),
    proxyRoot: raw('/proxy/{service}', {
      summary: 'Call the root of a service',
      idempotency: 'own',
      gate: { public: cookie },
      limit: PROXY_BYTES,
      hidden: true,
    }),
    proxy: raw('/proxy/{service}/{*rest}', {
      summary: 'Call a service',
      idempotency: 'own',
      gate: { public: cookie },
      limit: PROXY_BYTES,
      within: '10m',
    }),
    subscription: raw('/subscribe', {
      summary: 'Live events as a stream',
      idempotency: readAlone,
      gate: { public: cookie },
      limit: 65_536,
      waits: true,
    }),
    push: raw('/subscribe/push', {
      summary: 'Register a device of the session',
      idempotency: comesToTheSame,
      gate: { public: cookie },
      limit: 16_384,
    }),
    pushDevices: post('/v1/internal/push-devices', {
      summary: 'The devices of the live sessions of a person in an environment, with their tokens',
      gate: 'bff:devices:read',
      env: 'any',
      limit: 4_096,
      body: Type.Object({ env_id: Id, user_id: Type.String({ minLength: 1, maxLength: 330 }) }),
      returns: Type.Object({ devices: Type.Array(PushDevice, { maxItems: 100 }) }),
      hidden: true,
    }),
    live: socket('/ws', { summary: 'Live events and rooms', gate: { public: cookie } }),
    ...delegationRoutes,
    audit: raw('/audit', {
      summary: "A line for the gateway's log",
      idempotency: logged,
      gate: { public: 'Browsers report faults before anybody is signed in' },
      limit: 16_384,
    }),
    metrics: get('/metrics', {
      summary: 'What the gateway promises about itself',
      gate: { public: 'Constants, of which the documents say that everybody may read them' },
      returns: Type.String(),
    }),
  },

  jobs: {
    heartbeat: { summary: 'Keep live connections warm, and end those whose session is gone', every: '15s', runs: 'process' },
    pollDelegations: { summary: 'Ask whether customers have decided', every: '2s', runs: 'process' },
  },
});
