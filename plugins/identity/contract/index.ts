import { AskedAtThePages } from './account-request.ts';
import { actions } from './actions.ts';
import { config } from './config.ts';
import { events } from './events.ts';
import { defineContract, get, Id, node, Page, PageQuery, post, put, SortQuery, task, Type } from '@platform/sdk/contract';
import { templates } from './mail/templates.ts';
import { pages } from './pages.ts';
import { problems } from './problems.ts';
import { accessRoutes } from './routes/access-routes.ts';
import { accountRoutes } from './routes/account-routes.ts';
import { applicationRoutes } from './routes/application-routes.ts';
import { consentRoutes } from './routes/consent-routes.ts';
import { passkeyRoutes } from './routes/passkey-routes.ts';
import { protocolRoutes } from './routes/protocol-routes.ts';
import { directoryRoutes } from './routes/directory-routes.ts';
import { tenantRoutes } from './routes/tenant-routes.ts';
import { walletRoutes } from './routes/wallet-routes.ts';
import { realmRoutes } from './routes/realm-routes.ts';
import { recoveryRoutes } from './routes/recovery-routes.ts';
import { ssoRoutes } from './routes/sso-routes.ts';
import { OAuthContext, Scopes, SessionRow, Signed, User, UserRow, nullable } from './schema.ts';
import { comesToTheSame, ofTheProtocol, readAlone, worksOnce } from './idempotency.ts';

const ofName = { name: Type.String({ maxLength: 330 }) };

const hosted = 'A person signs in here; there is no credential yet';
/** The longest body is the metadata of a client (RFC 7591). */
const METADATA_BYTES = 65_536;
const protocol = 'The protocol authenticates its own clients (RFC 6749)';
const verbs = 'auth:membership:write';

/** Identity: who people and workloads are, and what they may do at this moment (facts/identity; G-AUTH). */
export const identity = defineContract({
  id: 'auth',
  title: 'Identity',
  family: 'identity',
  placement: { tier: 10 },
  unversioned: {
    '/oauth/': 'RFC 6749',
    '/mtls/': 'RFC 8705',
    '/scim/': 'RFC 7644: its version is its own',
    '/.well-known/': 'RFC 8615',
    '/{*path}': 'Pages for people',
  },
  forApplications: false,
  onEnvironmentDeleted: {
    purge: { oidc_state: 'sessions and tokens', consent_offers: 'offers of consent', users: 'accounts' },
    keep: {
      own_audit: 'forgotten after 30 days; the trail of the platform has it',
      realms: 'go with the access model, which the registry removes',
      roles: 'go with the access model, which the registry removes',
      user_groups: 'go with the access model, which the registry removes',
    },
  },
  essential: true,
  uses: { sys: ['sys:read', 'sys:instances:read', 'sys:invitations:join'] },
  workloads: { post: { post: ['post:write'] } },
  capabilities: ['key-value'],
  config,

  keys: {
    signing: {
      use: 'seal',
      documented: 'PLATFORM_AUTH_KEY_ENCRYPTION_REF',
      description: 'Secret reference of the 32 bytes (base64) that wrap signing keys',
      previous: 'PLATFORM_AUTH_PREVIOUS_KEY_ENCRYPTION_REFS',
      file: 'auth.key',
    },
  },

  actions,

  problems,

  events,

  routes: {
    ...accessRoutes,
    ...realmRoutes,
    putGrants: put('/v1/admin/grants/{vertical}', {
      params: { vertical: Type.String({ maxLength: 64 }) },
      summary: 'Replace what a vertical grants to built-in roles',
      gate: verbs,
      body: Type.Object({
        scopes: Type.Array(
          Type.Object({ scope: Type.String(), grants: Type.Union([Type.Literal('read'), Type.Literal('write'), Type.Literal('admin')]) }),
          { maxItems: 5_000 },
        ),
      }),
      returns: Type.Object({ vertical: Type.String(), scopes: Type.Integer() }),
      problems: ['scope_foreign'],
      hidden: true,
    }),
    getWorkload: get('/v1/admin/workloads/{name}', {
      params: ofName,
      summary: 'What a workload may do',
      gate: 'auth:membership:read',
      returns: Type.Object({ name: Type.String(), vertical: Type.String(), scopes: Scopes }),
      problems: ['workload_not_found'],
      hidden: true,
    }),
    putWorkload: put('/v1/admin/workloads/{name}', {
      params: ofName,
      summary: 'Register a workload',
      gate: verbs,
      body: Type.Object({ vertical: Type.String({ maxLength: 60 }), scopes: Scopes }),
      returns: Type.Object({ name: Type.String(), vertical: Type.String(), scopes: Scopes }),
      problems: ['workload_reserved'],
      hidden: true,
    }),

    listUsers: get('/v1/users', {
      summary: 'People, newest first',
      gate: { any: ['auth:users:read', 'auth:users:admin'] },
      query: {
        q: Type.Optional(Type.String({ title: 'E-mail or name', maxLength: 100 })),
        ...SortQuery('email', 'created_at'),
        ...PageQuery,
      },
      env: 'own',
      returns: Page(UserRow),
    }),
    getUser: get('/v1/admin/users/{user_id}', {
      params: { user_id: Id },
      summary: 'One person',
      gate: { any: ['auth:users:read', 'auth:users:admin'] },
      env: 'own',
      returns: User,
      problems: ['user_not_found'],
    }),
    listSessions: get('/v1/sessions', {
      summary: 'Sign-in sessions',
      gate: { any: ['auth:users:read', 'auth:users:admin'] },
      query: PageQuery,
      env: 'own',
      returns: Page(SessionRow),
    }),
    revokeSession: post('/v1/sessions/{session_id}/revoke', {
      params: { session_id: Type.String({ maxLength: 200 }) },
      summary: 'End a session',
      gate: 'auth:users:admin',
      env: 'own',
      problems: ['session_not_found'],
      emits: ['platform:auth:session:revoked'],
    }),

    ...accountRoutes,
    ...applicationRoutes,
    ...directoryRoutes,
    ...tenantRoutes,
    ...walletRoutes,

    branding: get('/v1/branding', {
      summary: 'How the sign-in pages look',
      gate: { public: hosted },
      returns: Type.Object({
        primary_color: nullable,
        background_color: nullable,
        text_color: nullable,
        font_family: nullable,
        logo_url: nullable,
        theme_mode: Type.String(),
        display_name: Type.String(),
        customCss: nullable,
      }),
    }),
    signIn: post('/v1/sign-in', {
      summary: 'Sign in with a password',
      idempotency: worksOnce,
      gate: { public: hosted },
      limit: 16_384,
      body: Type.Object({ email: Type.String({ maxLength: 320 }), password: Type.String({ maxLength: 1_024 }), oauth: OAuthContext }),
      returns: Signed,
      problems: [
        'invalid_credentials',
        'rate_limited',
        'account_locked',
        'csrf_mismatch',
        'bad_origin',
        'realm_not_found',
        'busy',
        'store_away',
      ],
    }),
    changePassword: post('/v1/password/change', {
      summary: 'Choose a new password during sign-in',
      idempotency: worksOnce,
      gate: { public: hosted },
      limit: 16_384,
      body: Type.Object({ password: Type.String({ maxLength: 1_024 }), oauth: OAuthContext }),
      returns: Signed,
      problems: ['weak_password', 'token_expired', 'invalid_credentials', 'csrf_mismatch', 'bad_origin', 'realm_not_found', 'busy'],
      emits: ['platform:auth:user:updated', 'platform:auth:session:revoked'],
    }),
    signOut: post('/v1/sign-out', {
      summary: 'End the sign-in session of this browser',
      idempotency: comesToTheSame,
      gate: { public: hosted },
      problems: ['csrf_mismatch', 'bad_origin', 'realm_not_found'],
      emits: ['platform:auth:session:revoked'],
    }),
    continueAuthorization: post('/oauth/authorize/continue', {
      summary: 'Allow or deny what an application asks for',
      idempotency: worksOnce,
      gate: { public: hosted },
      limit: 16_384,
      body: Type.Object({
        ...OAuthContext.properties,
        decision: Type.Union([Type.Literal('approve'), Type.Literal('deny')]),
        consent_flow: Type.Optional(Type.String({ maxLength: 100 })),
        selected_account_ids: Type.Optional(Type.Array(Type.String({ maxLength: 200 }), { maxItems: 200 })),
      }),
      returns: Type.Object({ redirect_to: Type.String() }),
      problems: ['csrf_mismatch', 'bad_origin', 'realm_not_found', 'interaction_not_found', 'session_required', 'account_not_offered'],
    }),
    ...consentRoutes,
    ...passkeyRoutes,
    ...protocolRoutes,
    ...recoveryRoutes,
    ...ssoRoutes,

    protocol: node('/oauth/{*rest}', {
      summary: 'OAuth and OpenID Connect',
      idempotency: ofTheProtocol,
      gate: { public: protocol },
      limit: METADATA_BYTES,
      errors: 'oauth',
      hidden: true,
    }),
    protocolOverMtls: node('/mtls/{*rest}', {
      summary: 'The same, authenticated by client certificate',
      idempotency: ofTheProtocol,
      gate: { public: protocol },
      limit: METADATA_BYTES,
      errors: 'oauth',
      hidden: true,
    }),
    discovery: node('/.well-known/{*rest}', {
      summary: 'Discovery and keys',
      idempotency: readAlone,
      gate: { public: 'Discovery is public by standard' },
      hidden: true,
    }),
    pages: node('/{*path}', {
      summary: 'The hosted pages',
      idempotency: readAlone,
      gate: { public: hosted },
      problems: ['realm_not_found', 'not_found', 'method_not_allowed'],
      hidden: true,
    }),
  },

  jobs: {
    forgetExpired: { summary: 'Delete expired protocol state', every: '5m', runs: 'fleet' },
    advanceRecoveries: { summary: 'Offer recoveries whose time has come, and end those whose time is up', every: '1m', runs: 'fleet' },
    refreshKeys: { summary: 'Take up signing keys that another process rotated', every: '30s', runs: 'process' },
    sealAnew: { summary: 'Seal under the key of now what lies sealed under one that came before', every: '5m', runs: 'fleet' },
    rotateKeys: { summary: 'Rotate the signing keys when they are old enough', every: '1h', runs: 'fleet' },
    publishRevocations: {
      summary: 'Tell verifiers again what was revoked, when their store has forgotten it',
      every: '10s',
      runs: 'fleet',
    },
  },

  tasks: {
    // About an hour and a half of tries. Mail that hangs never stands before it.
    answer: task(AskedAtThePages, {
      summary: 'Open accounts and write the mail that people asked for at the pages',
      lane: 'env',
      attempts: 12,
      backoff: [10, 20, 40, 80, 160, 320, 600],
      slots: 4,
      keepDead: '1d',
    }),
    // For about six hours; what nobody took by then lies with the dead tasks. A mail whose link has expired is not sent any more.
    mail: task(
      Type.Object({
        env_id: Id,
        user_id: Type.String(),
        to: Type.String(),
        subject: Type.String(),
        body: Type.String(),
        letter: Type.String(),
        locale: Type.String(),
        vars: Type.Record(Type.String(), Type.String()),
        until: Type.Optional(Type.String()),
      }),
      {
        summary: 'Hand mail of accounts to the notification service',
        attempts: 40,
        backoff: [10, 20, 40, 80, 160, 320, 600],
        timeout: '15s',
        sealed: 'signing',
      },
    ),
  },
  templates,
  pages,
});
