import type { NodeExchange, SealedBox } from '@platform/sdk';
import { type Configuration, errors, type KoaContextWithOIDC } from 'oidc-provider';
import type { Invited } from '../../account/sign-up/invited.ts';
import { actorToken, cibaFeature } from '../../approvals/ciba-feature.ts';
import type { CibaNotice } from '../../approvals/ciba-notice.ts';
import type { Consents } from '../../approvals/consents.ts';
import type { ClientDirectory } from '../../clients/client-directory.ts';
import type { Ctx } from '../../context.ts';
import type { EffectiveAccess } from '../../access/effective-access.ts';
import { pageOf, policyOf } from '../interactions.ts';
import { addressClaims, type People } from '../../people/people.ts';
import { grantName, ProtocolState } from '../protocol-state.ts';
import { ProtocolTurn } from '../protocol-turn.ts';
import type { FoundAccount } from '../found-account.ts';
import type { Realm } from '../../realms.ts';
import type { Sessions } from '../../sign-in/sessions.ts';
import type { SigningKeys } from '../../keys/signing-keys.ts';
import { tokenClaims } from '../tokens/token-claims.ts';
import type { TokenVerifier } from '../tokens/token-verifier.ts';
import type { Workloads } from '../../access/workloads.ts';
import { certificateFeature } from './certificate-feature.ts';
import { COOKIES } from './cookies.ts';
import { TTL } from './lifetimes.ts';
import { discoveryOf, PATHS } from './protocol-paths.ts';
import { resourceFeature } from './resource-feature.ts';

const ALGORITHMS = ['EdDSA', 'ES256', 'ML-DSA-65'];
/** Clients may call an Ed25519 key by its own name (RFC 9864). */
const CLIENT_ALGORITHMS = [...ALGORITHMS, 'Ed25519'];

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
export interface Surroundings {
  readonly issuer: string;
  readonly peerOf: (context: KoaContextWithOIDC) => NodeExchange['peer'];
}

/** How the library is set up for one realm; only its public options (facts/identity 8, rule 6). */
export function configurationOf(parts: ConfigurationParts, realm: Realm, { issuer, peerOf }: Surroundings): Configuration {
  const { ctx, box, keys, clients, consents, invited, notice, people, access, sessions, workloads, tokens } = parts;
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
    routes: PATHS,
    discovery: discoveryOf(issuer),
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
      mTLS: certificateFeature(peerOf),
      resourceIndicators: resourceFeature(parts, realm),
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
    ttl: TTL,
    cookies: COOKIES,
    issueRefreshToken: (_context, client) => client.grantTypeAllowed('refresh_token'),
    rotateRefreshToken: true,
    // Gateway sessions reach thirty days; the sign-in session ends after seven (house 24).
    expiresWithSession: () => false,
    extraParams: { screen_hint: null, consent_flow: checkFlow, invitation: checkInvitation, actor_token: actorToken(tokens) } as never,
    interactions: {
      policy: policyOf(consents, realm),
      url: (context, interaction) => pageOf({ clients, invited }, realm, context, interaction),
    },
    findAccount: (_context, subject) => accountOf(people, realm, subject),
    loadExistingGrant: context => consents.existing(context, realm),
    renderError: (context, out) => showError(context, out.error),
  };
}

async function accountOf(people: People, realm: Realm, subject: string): Promise<FoundAccount | undefined> {
  const person = ProtocolTurn.current(realm.env_id)?.person(subject) ?? (await people.byId(subject));
  // Only the realm's own people sign in at its host.
  if (person?.status !== 'active' || person.env_id !== realm.env_id) return undefined;
  return {
    accountId: subject,
    person,
    claims: async () => ({ sub: subject, ...addressClaims(person), name: person.display_name ?? person.email }),
  };
}

/** The page that says what went wrong. */
export function showError(context: KoaContextWithOIDC, error: string): void {
  const correlation = context.get('x-platform-correlation-id');
  context.status = 303;
  context.redirect(`/error?${new URLSearchParams({ error, ...(correlation ? { correlation_id: correlation } : {}) })}`);
}

async function checkFlow(_context: KoaContextWithOIDC, flow: unknown): Promise<void> {
  if (flow !== undefined && (typeof flow !== 'string' || !/^[a-z][a-z0-9_-]{0,39}$/.test(flow)))
    throw new errors.InvalidRequest('consent_flow is a short name');
}

async function checkInvitation(_context: KoaContextWithOIDC, reference: unknown): Promise<void> {
  if (reference !== undefined && (typeof reference !== 'string' || !/^[A-Za-z0-9_-]{43}$/.test(reference)))
    throw new errors.InvalidRequest('invitation is the SHA-256 of a token, in base64url');
}
