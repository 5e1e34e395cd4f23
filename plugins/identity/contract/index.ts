import { AskedAtThePages } from './account-request.ts';
import { actions } from './actions.ts';
import { defineContract, del, event, get, Id, node, Page, PageQuery, post, put, task, Type } from '@platform/sdk/contract';
import { templates } from './mail/templates.ts';
import { pages } from './pages.ts';
import { problems } from './problems.ts';
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
import { recoveryConfig } from './schema/recovery.ts';
import { ssoRoutes } from './routes/sso-routes.ts';
import { Host, Name, OAuthContext, Scopes, SessionRow, Signed, User, UserRow, nullable } from './schema.ts';

const hosted = 'A person signs in here; there is no credential yet';
const protocol = 'The protocol authenticates its own clients (RFC 6749)';
const verbs = 'auth:membership:write';

/** Identity: who people and workloads are, and what they may do at this moment (facts/identity; G-AUTH). */
export const identity = defineContract({
  id: 'auth',
  title: 'Identity',
  family: 'identity',
  placement: { tier: 10 },
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
  config: Type.Object({
    bootstrapEmail: Type.Optional(
      Type.String({
        env: 'PLATFORM_AUTH_BOOTSTRAP_EMAIL',
        pattern: '^[^@\\s]+@[^@\\s]+$',
        description: 'E-mail of the first administrator; admin@ops.sys.{domain} when unset',
      }),
    ),
    bootstrapPasswordRef: Type.Optional(
      Type.String({
        env: 'PLATFORM_AUTH_BOOTSTRAP_PASSWORD_REF',
        description: "Secret reference of the first administrator's one-time password",
      }),
    ),
    internalTokenAlg: Type.Union([Type.Literal('EdDSA'), Type.Literal('ES256'), Type.Literal('ML-DSA-65')], {
      env: 'PLATFORM_AUTH_INTERNAL_TOKEN_ALG',
      default: 'EdDSA',
      description: 'Signature of tokens that only services of the platform read; applications get EdDSA or ES256, as they registered',
    }),
    keyRotationDays: Type.Integer({
      env: 'PLATFORM_AUTH_KEY_ROTATION_DAYS',
      default: 30,
      minimum: 1,
      maximum: 3_650,
      description: 'Days after which the signing keys are rotated',
    }),
    passkeys: Type.Boolean({
      env: 'PLATFORM_AUTH_PASSKEYS',
      default: false,
      description: "Whether the platform's own people may sign in with passkeys; an environment says so for its realm",
    }),
    ...recoveryConfig,
  }),

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

  events: {
    'platform:auth:session:revoked': event(
      'A session ended before its time',
      Type.Object({
        session_id: Type.String(),
        user_id: Id,
        env_id: Id,
        reason: Type.Union([
          Type.Literal('sign_out'),
          Type.Literal('admin'),
          Type.Literal('password_change'),
          Type.Literal('reuse_detected'),
          Type.Literal('expired'),
        ]),
        revoked_at: Type.String(),
      }),
    ),
    'platform:auth:client:created': event('An application can be signed in to', Type.Object({ client_id: Type.String(), env_id: Id })),
    'platform:auth:client:updated': event(
      'An application is another one than before',
      Type.Object({ client_id: Type.String(), env_id: Id }),
    ),
    'platform:auth:client:deleted': event(
      'An application cannot be signed in to any more',
      Type.Object({ client_id: Type.String(), env_id: Id }),
    ),
    'platform:auth:user:created': event('A person has an account', Type.Object({ user_id: Id, env_id: Id })),
    'platform:auth:user:updated': event('An account changed', Type.Object({ user_id: Id, env_id: Id })),
    'platform:auth:user:deleted': event('An account is gone', Type.Object({ user_id: Id, env_id: Id })),
    'platform:auth:recovery:updated': event(
      'The recovery of an account went on, or ended',
      Type.Object({ recovery_id: Id, user_id: Id, env_id: Id, status: Type.String() }),
    ),
  },

  routes: {
    putRole: put('/v1/admin/roles/{role}', {
      summary: 'Make or change a role',
      gate: verbs,
      body: Type.Object({ scopes: Scopes, description: Type.Optional(Type.String({ maxLength: 500 })) }),
      returns: Type.Object({ name: Name, env_id: Id, scopes: Scopes, created: Type.Boolean() }),
      problems: ['target_env_missing', 'name_invalid'],
    }),
    nestRole: put('/v1/admin/roles/{role}/nested/{child}', {
      summary: 'Nest a role in another',
      gate: verbs,
      returns: Type.Object({ role: Name, child: Name }),
      problems: ['target_env_missing', 'role_not_found', 'role_cycle'],
    }),
    deleteRole: del('/v1/admin/roles/{role}', {
      summary: 'Take a role away from everybody',
      gate: verbs,
      problems: ['target_env_missing', 'access_protected'],
    }),
    putGroup: put('/v1/admin/groups/{group}', {
      summary: 'Make a group',
      gate: verbs,
      body: Type.Object({ description: Type.Optional(Type.String({ maxLength: 500 })) }),
      returns: Type.Object({ group_id: Id, name: Name, env_id: Id, created: Type.Boolean() }),
      problems: ['target_env_missing', 'name_invalid'],
    }),
    deleteGroup: del('/v1/admin/groups/{group}', {
      summary: 'Take a group away, with who is in it',
      gate: verbs,
      problems: ['target_env_missing', 'access_protected'],
    }),
    putGroupRole: put('/v1/admin/groups/{group}/roles/{role}', {
      summary: 'Give a group a role',
      gate: verbs,
      returns: Type.Object({ group: Name, role: Name }),
      problems: ['target_env_missing', 'group_not_found', 'role_not_found'],
    }),
    putGroupMember: put('/v1/admin/groups/{group}/members/{user_id}', {
      summary: 'Put a person into a group',
      gate: verbs,
      returns: Type.Object({ group: Name, user_id: Id }),
      problems: ['target_env_missing', 'group_not_found', 'user_not_found'],
    }),
    deleteGroupMember: del('/v1/admin/groups/{group}/members/{user_id}', {
      summary: 'Take a person out of a group',
      gate: verbs,
      problems: ['target_env_missing'],
    }),
    putUserRole: put('/v1/admin/users/{user_id}/roles/{role}', {
      summary: 'Give a person a role',
      gate: verbs,
      returns: Type.Object({ user_id: Id, role: Name }),
      problems: ['target_env_missing', 'user_not_found', 'role_not_found'],
    }),
    deleteUserRole: del('/v1/admin/users/{user_id}/roles/{role}', {
      summary: 'Take a role from a person',
      gate: verbs,
      problems: ['target_env_missing'],
    }),
    userGroups: get('/v1/admin/users/{user_id}/groups', {
      summary: 'Groups of a person, live',
      gate: 'auth:membership:read',
      returns: Type.Object({ user_id: Type.String(), groups: Type.Array(Type.Object({ name: Name, env_id: Id })), as_of: Type.String() }),
      problems: ['user_id_missing'],
    }),
    groupMembers: get('/v1/admin/groups/{group}/members', {
      summary: 'Members of a group',
      gate: 'auth:membership:read',
      query: PageQuery,
      returns: Page(Type.Object({ user_id: Id, email: Type.String(), display_name: nullable, joined_at: Type.String() })),
    }),
    membersOf: get('/v1/admin/members', {
      summary: 'People of several groups of a realm, each once with the groups they are in',
      gate: 'auth:membership:read',
      query: {
        ...PageQuery,
        groups: Type.String({ pattern: '^[a-z0-9:_.-]{1,200}(,[a-z0-9:_.-]{1,200}){0,9}$' }),
        user_id: Type.Optional(Id),
      },
      returns: Page(
        Type.Object({ user_id: Id, email: Type.String(), display_name: nullable, groups: Type.Array(Name), joined_at: Type.String() }),
      ),
      problems: ['target_env_missing', 'invalid_cursor'],
      hidden: true,
    }),
    leaveGroups: post('/v1/admin/users/{user_id}/leave', {
      summary: 'Take a person out of every group, in any realm, whose name starts with one of these',
      gate: verbs,
      body: Type.Object({ prefixes: Type.Array(Type.String({ pattern: '^[a-z0-9:_.-]{1,199}:$' }), { minItems: 1, maxItems: 5_000 }) }),
      returns: Type.Object({ left: Type.Array(Type.Object({ name: Name, env_id: Id })) }),
      hidden: true,
    }),
    userScopes: get('/v1/admin/users/{user_id}/scopes', {
      summary: 'What a person may do in an environment, live',
      gate: 'auth:membership:read',
      query: { env_id: Id },
      returns: Type.Object({ scopes: Scopes, as_of: Type.String() }),
      problems: ['user_id_missing'],
    }),
    provisionAccess: post('/v1/admin/access', {
      summary: 'Make the access model of an organization or environment',
      gate: verbs,
      idempotency: 'own',
      body: Type.Object({
        template: Type.Union([Type.Literal('org'), Type.Literal('env')]),
        org_id: Id,
        env_id: Type.Optional(Id),
        owner: Type.Optional(Id),
        host: Type.Optional(Host),
      }),
      returns: Type.Object({ groups: Type.Array(Name) }),
      problems: ['user_not_found', 'host_taken', 'name_invalid'],
      hidden: true,
    }),
    describeAccess: get('/v1/admin/access/{template}/{id}', {
      summary: 'Whether the access model of an organization or environment is there',
      gate: 'auth:membership:read',
      returns: Type.Object({ groups: Type.Array(Name) }),
      problems: ['name_invalid'],
      hidden: true,
    }),
    removeAccess: del('/v1/admin/access/{template}/{id}', {
      summary: 'Take an access model away',
      gate: verbs,
      problems: ['name_invalid'],
      hidden: true,
    }),
    scopeHolders: get('/v1/admin/scopes/{scope}/holders', {
      summary: 'Who holds a scope in an environment, live',
      gate: 'auth:membership:read',
      query: { ...PageQuery, env_id: Id },
      returns: Page(Type.Object({ user_id: Id, email: Type.String(), display_name: nullable, via: Type.Array(Type.String()) })),
      problems: ['name_invalid'],
      hidden: true,
    }),
    ...realmRoutes,
    putGrants: put('/v1/admin/grants/{vertical}', {
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
      summary: 'What a workload may do',
      gate: 'auth:membership:read',
      returns: Type.Object({ name: Type.String(), vertical: Type.String(), scopes: Scopes }),
      problems: ['workload_not_found'],
      hidden: true,
    }),
    putWorkload: put('/v1/admin/workloads/{name}', {
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
      query: PageQuery,
      env: 'own',
      returns: Page(UserRow),
    }),
    getUser: get('/v1/admin/users/{user_id}', {
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
      gate: { public: hosted },
      limit: 16_384,
      body: Type.Object({ password: Type.String({ maxLength: 1_024 }), oauth: OAuthContext }),
      returns: Signed,
      problems: ['weak_password', 'token_expired', 'invalid_credentials', 'csrf_mismatch', 'bad_origin', 'realm_not_found', 'busy'],
      emits: ['platform:auth:user:updated', 'platform:auth:session:revoked'],
    }),
    signOut: post('/v1/sign-out', {
      summary: 'End the sign-in session of this browser',
      gate: { public: hosted },
      problems: ['csrf_mismatch', 'bad_origin', 'realm_not_found'],
      emits: ['platform:auth:session:revoked'],
    }),
    continueAuthorization: post('/oauth/authorize/continue', {
      summary: 'Allow or deny what an application asks for',
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

    protocol: node('/oauth/{*rest}', { summary: 'OAuth and OpenID Connect', gate: { public: protocol }, errors: 'oauth', hidden: true }),
    protocolOverMtls: node('/mtls/{*rest}', {
      summary: 'The same, authenticated by client certificate',
      gate: { public: protocol },
      errors: 'oauth',
      hidden: true,
    }),
    discovery: node('/.well-known/{*rest}', {
      summary: 'Discovery and keys',
      gate: { public: 'Discovery is public by standard' },
      hidden: true,
    }),
    pages: node('/{*path}', {
      summary: 'The hosted pages',
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
