import { X509Certificate } from 'node:crypto';
import { type NodeExchange, type SealedBox, SYSTEM } from '@platform/sdk';
import { type Account, type Configuration, errors, type KoaContextWithOIDC } from 'oidc-provider';
import type { Invited } from '../account/invited.ts';
import { actorToken, cibaFeature } from '../approvals/ciba-approval.ts';
import type { CibaNotice } from '../approvals/ciba-notice.ts';
import { API, type Consents } from '../approvals/consents.ts';
import { type ClientDirectory, CONSOLE_CLIENT } from '../clients/client-directory.ts';
import type { Ctx } from '../context.ts';
import type { EffectiveAccess } from '../access/effective-access.ts';
import { pageOf, policyOf } from './interactions.ts';
import { type Account as PersonAccount, addressClaims, type People } from '../people/people.ts';
import { grantName, ProtocolState } from './protocol-state.ts';
import { ProtocolTurn } from './protocol-turn.ts';
import type { Realm } from '../realms.ts';
import { canonicalScope } from '../access/scope-name.ts';
import type { Sessions } from '../sign-in/sessions.ts';
import type { SigningKeys } from '../keys/signing-keys.ts';
import { tokenClaims } from './token-claims.ts';
import type { TokenVerifier } from './token-verifier.ts';
import type { Workloads } from '../access/workloads.ts';

const ALGORITHMS = ['EdDSA', 'ES256', 'ML-DSA-65'];
/** Clients may call an Ed25519 key by its own name (RFC 9864). */
const CLIENT_ALGORITHMS = [...ALGORITHMS, 'Ed25519'];
/** Applications that choose RS256 for their ID tokens have access tokens that services read. */
const ACCESS_TOKEN_ALG: Readonly<Record<string, string>> = { RS256: 'ES256' };
/** G-K-07, G-AUTH-08; seconds. */
export const LIFETIME = {
  token: 900,
  delegated: 600,
  ciba: 300,
  device: 600,
  code: 60,
  par: 60,
  id: 300,
  refresh: 30 * 86_400,
  sessionIdle: 12 * 3_600,
  sessionMost: 7 * 86_400,
  interaction: 3_600,
} as const;
const MAX_CERTIFICATES = 1_000;
export const SESSION_COOKIE = '__Host-platform-session';

export interface ConfigurationParts {
  readonly ctx: Ctx;
  readonly box: SealedBox;
  readonly keys: SigningKeys;
  readonly clients: ClientDirectory;
  readonly workloads: Workloads;
  readonly people: People;
  readonly access: EffectiveAccess;
  readonly consents: Consents;
  readonly notice: CibaNotice;
  readonly invited: Invited;
  readonly sessions: Sessions;
  readonly tokens: TokenVerifier;
}
/** A person as the library knows one, with all that is known of them. */
export interface FoundAccount extends Account {
  readonly person: PersonAccount;
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
  const { ctx, box, keys, clients, consents, invited, notice, people, access, sessions, workloads, tokens } = parts;
  const scopesOf = async (clientId: string) => {
    if (clientId === CONSOLE_CLIENT) return everyAction(ctx);
    // At a customer's realm a delegator asks for what a person may do, never for what the workload may.
    return realm.env_id === SYSTEM.envId ? ((await workloads.find(clientId))?.scopes ?? []) : everyAction(ctx);
  };
  return {
    adapter: (model: string) =>
      new ProtocolState({
        ctx,
        box,
        clients,
        envId: realm.env_id,
        model,
        grantEnded: id => sessions.endGrant(realm.env_id, grantName(id)),
      }),
    jwks: { keys: keys.jwks as never },
    clientAuthMethods: ['client_secret_basic', 'client_secret_post', 'private_key_jwt', 'tls_client_auth', 'none'] as never,
    clientDefaults: { id_token_signed_response_alg: 'EdDSA', grant_types: ['authorization_code'], response_types: ['code'] },
    clientBasedCORS: () => false,
    enabledJWA: {
      idTokenSigningAlgValues: [...ALGORITHMS, 'RS256'] as never,
      clientAuthSigningAlgValues: CLIENT_ALGORITHMS as never,
      dPoPSigningAlgValues: CLIENT_ALGORITHMS as never,
    },
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
      device_authorization: '/oauth/device_authorization',
      // The page is ours; what the library would serve under this path is never reached.
      code_verification: '/device',
      backchannel_authentication: '/oauth/bc-authorize',
    },
    discovery: {
      registration_endpoint: `${issuer}/oauth/register`,
      mtls_endpoint_aliases: {
        pushed_authorization_request_endpoint: `${issuer}/mtls/oauth/par`,
        token_endpoint: `${issuer}/mtls/oauth/token`,
        revocation_endpoint: `${issuer}/mtls/oauth/revoke`,
        introspection_endpoint: `${issuer}/mtls/oauth/introspect`,
        registration_endpoint: `${issuer}/mtls/oauth/register`,
        backchannel_authentication_endpoint: `${issuer}/mtls/oauth/bc-authorize`,
        device_authorization_endpoint: `${issuer}/mtls/oauth/device_authorization`,
      },
    },
    features: {
      devInteractions: { enabled: false },
      // The library calls it a draft, and asks to be told which one (pinned by the exact version in package.json).
      externalSigningSupport: { enabled: true, ack: 'experimental-01' },
      pushedAuthorizationRequests: { enabled: true },
      clientCredentials: { enabled: true },
      revocation: { enabled: true, allowedPolicy: (_context, client, token) => token.clientId === client.clientId },
      introspection: { enabled: true, allowedPolicy: (_context, client, token) => token.clientId === client.clientId },
      rpInitiatedLogout: { enabled: false },
      dPoP: { enabled: true },
      deviceFlow: { enabled: true, charset: 'base-20', mask: '****-****' },
      ciba: cibaFeature({ notice, people }, realm),
      mTLS: {
        enabled: true,
        certificateBoundAccessTokens: true,
        tlsClientAuth: true,
        getCertificate: (context: KoaContextWithOIDC) => {
          const peer = peerOf(context);
          return peer && certificateOf(peer);
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
        getResourceServerInfo: async (_context, resource, client) => {
          if (resource !== API) throw new errors.InvalidTarget(`the one resource here is ${API}`);
          const registered = await clients.registered(realm.env_id, client.clientId);
          const scopes = registered
            ? registered.metadata.scope.split(' ').filter(scope => scope.includes(':'))
            : await scopesOf(client.clientId);
          return {
            scope: scopes.join(' '),
            audience: API,
            accessTokenTTL: LIFETIME.token,
            accessTokenFormat: 'jwt' as const,
            // Applications read what they registered for; what stays inside is the platform's own choice (G-K-06).
            jwt: { sign: { alg: accessTokenAlg(registered?.metadata.id_token_signed_response_alg ?? ctx.config.internalTokenAlg) } },
          };
        },
      },
    },
    formats: {
      customizers: {
        jwt: async (context, token, parts_) => {
          const claims = await tokenClaims({ ctx, people, access, workloads, realm, clients, consents }, context, token as never);
          Object.assign(parts_.payload, claims);
          // The answer of the token endpoint reads it from here.
          token.scope = claims.scope;
        },
      },
    },
    ttl: {
      // Functions, because a number would win over what the resource says (facts/identity 2).
      AccessToken: context => (context.oidc.entities.BackchannelAuthenticationRequest ? LIFETIME.delegated : LIFETIME.token),
      ClientCredentials: () => LIFETIME.token,
      AuthorizationCode: LIFETIME.code,
      PushedAuthorizationRequest: LIFETIME.par,
      IdToken: LIFETIME.id,
      DeviceCode: LIFETIME.device,
      BackchannelAuthenticationRequest: context =>
        Math.min(LIFETIME.ciba, Number(context.oidc.params?.['requested_expiry'] ?? LIFETIME.ciba)),
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
    extraParams: { screen_hint: null, consent_flow: checkFlow, invitation: checkInvitation, actor_token: actorToken(tokens) } as never,
    interactions: {
      policy: policyOf(consents, realm),
      url: (context, interaction) => pageOf({ clients, invited }, realm, context, interaction),
    },
    findAccount: async (_context, subject): Promise<FoundAccount | undefined> => {
      const person = ProtocolTurn.current(realm.env_id)?.person(subject) ?? (await people.byId(subject));
      // Only the realm's own people sign in at its host.
      if (person?.status !== 'active' || person.env_id !== realm.env_id) return undefined;
      return {
        accountId: subject,
        person,
        claims: async () => ({ sub: subject, ...addressClaims(person), name: person.display_name ?? person.email }),
      };
    },
    loadExistingGrant: context => consents.existing(context, realm),
    renderError: (context, out) => showError(context, out.error),
  };
}

const accessTokenAlg = (alg: string) => (ACCESS_TOKEN_ALG[alg] ?? alg) as 'EdDSA';

/** The page that says what went wrong. */
export function showError(context: KoaContextWithOIDC, error: string): void {
  const correlation = context.get('x-platform-correlation-id');
  context.status = 303;
  context.redirect(`/error?${new URLSearchParams({ error, ...(correlation ? { correlation_id: correlation } : {}) })}`);
}

const certificates = new Map<string, X509Certificate>();

/** Parsing a post-quantum certificate costs more than signing a token; a connection shows the same one every time. */
function certificateOf({ thumbprint, pem }: NonNullable<NodeExchange['peer']>): X509Certificate {
  let known = certificates.get(thumbprint);
  if (!known) {
    known = new X509Certificate(pem);
    certificates.set(thumbprint, known);
    if (certificates.size > MAX_CERTIFICATES) certificates.delete(certificates.keys().next().value as string);
  }
  return known;
}

const everywhere = new WeakMap<object, readonly string[]>();

/** Scopes a person's token can name. The catalog's list is another one when it changes. */
function everyAction(ctx: Ctx): readonly string[] {
  const actions = ctx.catalog.actions();
  const named = everywhere.get(actions) ?? actions.flatMap(({ scope, machineOnly }) => (machineOnly ? [] : [canonicalScope(scope)]));
  everywhere.set(actions, named);
  return named;
}

async function checkFlow(_context: KoaContextWithOIDC, flow: unknown): Promise<void> {
  if (flow !== undefined && (typeof flow !== 'string' || !/^[a-z][a-z0-9_-]{0,39}$/.test(flow)))
    throw new errors.InvalidRequest('consent_flow is a short name');
}

async function checkInvitation(_context: KoaContextWithOIDC, reference: unknown): Promise<void> {
  if (reference !== undefined && (typeof reference !== 'string' || !/^[A-Za-z0-9_-]{43}$/.test(reference)))
    throw new errors.InvalidRequest('invitation is the SHA-256 of a token, in base64url');
}
