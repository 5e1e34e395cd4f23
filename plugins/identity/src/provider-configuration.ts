import { X509Certificate } from 'node:crypto';
import type { NodeExchange, SealedBox } from '@platform/sdk';
import { type Configuration, interactionPolicy, type KoaContextWithOIDC } from 'oidc-provider';
import { type ClientDirectory, CONSOLE_CLIENT } from './client-directory.ts';
import type { Ctx } from './context.ts';
import type { EffectiveAccess } from './effective-access.ts';
import { addressClaims, type People } from './people.ts';
import { ProtocolState } from './protocol-state.ts';
import type { Realm } from './realms.ts';
import { canonicalScope } from './scope-name.ts';
import type { SigningKeys } from './signing-keys.ts';
import { tokenClaims } from './token-claims.ts';
import type { Workloads } from './workloads.ts';

/** The one resource of this authorization server: the platform's services. */
const API = 'urn:platform:api';
const ALGORITHMS = ['EdDSA', 'ES256', 'ML-DSA-65'];
/** G-K-07, G-AUTH-08; seconds. */
export const LIFETIME = { token: 900, code: 60, par: 60, id: 300, refresh: 30 * 86_400, sessionIdle: 12 * 3_600, sessionMost: 7 * 86_400, interaction: 3_600 } as const;
export const SESSION_COOKIE = '__Host-platform-session';

export interface ConfigurationParts {
  readonly ctx: Ctx;
  readonly box: SealedBox;
  readonly keys: SigningKeys;
  readonly clients: ClientDirectory;
  readonly workloads: Workloads;
  readonly people: People;
  readonly access: EffectiveAccess;
}
export interface Surroundings {
  readonly issuer: string;
  readonly peerOf: (context: KoaContextWithOIDC) => NodeExchange['peer'];
}

/** Idle and absolute end of a sign-in session, counted from the sign-in itself. */
export function sessionSeconds(loginTs: number | undefined, now = Math.floor(Date.now() / 1_000)): number {
  return Math.max(1, Math.min(LIFETIME.sessionIdle, LIFETIME.sessionMost - (now - (loginTs ?? now))));
}

/** How the library is set up for one realm; only its public options (facts/identity 8, rule 6). */
export function configurationOf(parts: ConfigurationParts, realm: Realm, { issuer, peerOf }: Surroundings): Configuration {
  const { ctx, box, keys, clients, people, access, workloads } = parts;
  return {
    adapter: (model: string) => new ProtocolState({ ctx, box, clients, envId: realm.env_id, model }),
    jwks: { keys: keys.jwks as never },
    clientAuthMethods: ['tls_client_auth', 'none'] as never,
    clientDefaults: { id_token_signed_response_alg: 'EdDSA', grant_types: ['authorization_code'], response_types: ['code'] },
    clientBasedCORS: () => false,
    enabledJWA: { idTokenSigningAlgValues: ALGORITHMS as never },
    responseTypes: ['code'],
    scopes: ['openid', 'email', 'profile', 'offline_access'],
    claims: { openid: ['sub'], email: ['email', 'email_verified'], profile: ['name'] },
    pkce: { required: () => true },
    routes: {
      authorization: '/oauth/authorize',
      token: '/oauth/token',
      pushed_authorization_request: '/oauth/par',
      revocation: '/oauth/revoke',
      introspection: '/oauth/introspect',
      userinfo: '/oauth/userinfo',
      jwks: '/.well-known/jwks.json',
      end_session: '/oauth/end-session',
    },
    discovery: {
      mtls_endpoint_aliases: {
        pushed_authorization_request_endpoint: `${issuer}/mtls/oauth/par`,
        token_endpoint: `${issuer}/mtls/oauth/token`,
        revocation_endpoint: `${issuer}/mtls/oauth/revoke`,
        introspection_endpoint: `${issuer}/mtls/oauth/introspect`,
      },
    },
    features: {
      devInteractions: { enabled: false },
      pushedAuthorizationRequests: { enabled: true },
      clientCredentials: { enabled: true },
      revocation: { enabled: true, allowedPolicy: (_context, client, token) => token.clientId === client.clientId },
      introspection: { enabled: true, allowedPolicy: (_context, client, token) => token.clientId === client.clientId },
      rpInitiatedLogout: { enabled: false },
      mTLS: {
        enabled: true,
        certificateBoundAccessTokens: true,
        tlsClientAuth: true,
        getCertificate: (context: KoaContextWithOIDC) => {
          const peer = peerOf(context);
          return peer && new X509Certificate(peer.pem);
        },
        certificateAuthorized: (context: KoaContextWithOIDC) => peerOf(context) !== undefined,
        certificateSubjectMatches: (context: KoaContextWithOIDC, property: string, expected: string) => {
          const peer = peerOf(context);
          return peer !== undefined && property === 'tls_client_auth_subject_dn' && expected === `CN=m2m-${peer.workload}`;
        },
      },
      resourceIndicators: {
        enabled: true,
        defaultResource: () => API,
        useGrantedResource: () => true,
        getResourceServerInfo: async (_context, _resource, client) => ({
          scope: (client.clientId === CONSOLE_CLIENT ? everyAction(ctx) : ((await workloads.find(client.clientId))?.scopes ?? [])).join(' '),
          audience: API,
          accessTokenTTL: LIFETIME.token,
          accessTokenFormat: 'jwt' as const,
          jwt: { sign: { alg: 'EdDSA' as const } },
        }),
      },
    },
    formats: {
      customizers: {
        jwt: async (context, token, parts_) => {
          const claims = await tokenClaims({ ctx, people, access, workloads, realm }, context, token as never);
          Object.assign(parts_.payload, claims);
          // The answer of the token endpoint reads it from here.
          token.scope = claims.scope;
        },
      },
    },
    ttl: {
      // Functions, because a number would win over what the resource says (facts/identity 2).
      AccessToken: () => LIFETIME.token,
      ClientCredentials: () => LIFETIME.token,
      AuthorizationCode: LIFETIME.code,
      PushedAuthorizationRequest: LIFETIME.par,
      IdToken: LIFETIME.id,
      // Thirty days from the sign-in, however often it rotates.
      RefreshToken: context => context.oidc.entities.RotatedRefreshToken?.remainingTTL ?? LIFETIME.refresh,
      Grant: LIFETIME.refresh + 3_600,
      Session: (_context, session) => sessionSeconds(session.loginTs),
      Interaction: LIFETIME.interaction,
    },
    cookies: {
      // The library gives `resume` the path of its own authorization, which __Host- does not allow.
      names: { session: SESSION_COOKIE, interaction: '__Host-platform-interaction', resume: '__Secure-platform-resume' },
      long: { path: '/', httpOnly: true, secure: true, sameSite: 'lax', signed: false },
      short: { path: '/', httpOnly: true, secure: true, sameSite: 'lax', signed: false },
    },
    issueRefreshToken: (_context, client) => client.grantTypeAllowed('refresh_token'),
    rotateRefreshToken: true,
    // Gateway sessions reach thirty days; the sign-in session ends after seven (house 24).
    expiresWithSession: () => false,
    extraParams: ['screen_hint'],
    interactions: {
      policy: policyOf(),
      url: (_context, { params, uid, prompt }) => {
        const carried = ['client_id', 'redirect_uri', 'state', 'code_challenge', 'scope', 'login_hint'].flatMap(name => (typeof params[name] === 'string' ? [[name, params[name] as string]] : []));
        const step = prompt.name !== 'login' ? 'consent' : params['screen_hint'] === 'signup' ? 'sign-up' : 'sign-in';
        return `/${step}?${new URLSearchParams([...carried, ['uid', uid]])}`;
      },
    },
    findAccount: async (_context, subject) => {
      const person = await people.byId(subject);
      // Only the realm's own people sign in at its host.
      if (person?.status !== 'active' || person.env_id !== realm.env_id) return undefined;
      return { accountId: subject, claims: async () => ({ sub: subject, ...addressClaims(person), name: person.display_name ?? person.email }) };
    },
    loadExistingGrant: async context => {
      const { client, session, provider, requestParamScopes } = context.oidc;
      const consented = context.oidc.result?.consent?.grantId;
      if (consented) return provider.Grant.find(consented);
      if (!client || !session?.accountId || client.clientId !== CONSOLE_CLIENT) return undefined;
      // First-party: what is asked for is granted without a page in between. A grant of its own for every authorization, so that
      // one revoked family leaves the others alone.
      const grant = new provider.Grant({ clientId: client.clientId, accountId: session.accountId });
      const asked = [...requestParamScopes];
      grant.addOIDCScope(asked.filter(scope => !scope.includes(':')).join(' '));
      grant.addResourceScope(API, asked.filter(scope => scope.includes(':')).join(' '));
      await grant.save();
      return grant;
    },
    renderError: (context, out) => {
      const said = { error: out.error, ...(context.get('x-platform-correlation-id') ? { correlation_id: context.get('x-platform-correlation-id') } : {}) };
      context.status = 303;
      context.redirect(`/error?${new URLSearchParams(said)}`);
    },
  };
}

/** Scopes a person's token can name. */
function everyAction(ctx: Ctx): string[] {
  return ctx.catalog.actions().flatMap(({ scope, machineOnly }) => (machineOnly ? [] : [canonicalScope(scope)]));
}

/**
 * When a page stands in between. Who signed in is never written into the authorization: it is the session of the browser that goes on,
 * so nobody can finish a stranger's authorization, and any number of tabs may be open. «Sign in again» therefore means: since it began.
 */
function policyOf(): interactionPolicy.DefaultPolicy {
  const { base, Check } = interactionPolicy;
  const policy = base();
  const login = policy.get('login');
  const since = ({ oidc }: KoaContextWithOIDC) => {
    const began = oidc.entities.Interaction?.iat;
    return began !== undefined && (oidc.session?.loginTs ?? 0) >= began;
  };
  login?.checks.remove('login_prompt');
  login?.checks.remove('max_age');
  login?.checks.add(new Check('login_prompt', 'the person must sign in again', 'login_required', context => context.oidc.prompts.has('login') && !since(context)));
  login?.checks.add(
    new Check('max_age', 'the sign-in is too old', 'login_required', context => {
      const age = context.oidc.params?.['max_age'];
      return age !== undefined && !since(context) && (context.oidc.session?.past(Number(age)) ?? true);
    }),
  );
  login?.checks.add(new Check('account_gone', 'the account is closed', 'login_required', ({ oidc }) => oidc.session?.accountId !== undefined && oidc.account === undefined));
  for (const check of policy.get('consent')?.checks ?? []) {
    const ask = check.check;
    check.check = context => (context.oidc.client?.clientId === CONSOLE_CLIENT ? false : ask(context));
  }
  return policy;
}
