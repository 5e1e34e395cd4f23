import { X509Certificate } from 'node:crypto';
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { NodeExchange } from '@platform/sdk';
import Provider, { type Configuration, type KoaContextWithOIDC } from 'oidc-provider';
import { type ClientDirectory, CONSOLE_CLIENT, TOKEN_EXCHANGE } from './client-directory.ts';
import type { Ctx } from './context.ts';
import type { EffectiveAccess } from './effective-access.ts';
import type { People } from './people.ts';
import { ProtocolState } from './protocol-state.ts';
import type { Realm, Realms } from './realms.ts';
import type { SealedBox } from './sealed-box.ts';
import type { SigningKeys } from './signing-keys.ts';
import { EXCHANGE_PARAMETERS, type TokenExchange } from './token-exchange.ts';
import { tokenClaims } from './token-claims.ts';
import type { Workloads } from './workloads.ts';

const API = 'urn:platform:api';
const LIFETIME = { access: 900, code: 60, par: 60, id: 300, refresh: 30 * 86_400, session: 7 * 86_400, interaction: 3_600 };
const MAX_PROVIDERS = 500;
export const SESSION_COOKIE = '__Host-platform-session';
export const INTERACTION_COOKIE = '__Host-platform-interaction';

export interface ProtocolParts {
  readonly box: SealedBox;
  readonly keys: SigningKeys;
  readonly clients: ClientDirectory;
  readonly workloads: Workloads;
  readonly people: People;
  readonly access: EffectiveAccess;
  readonly exchange: TokenExchange;
  readonly realms: Realms;
}

/** OAuth and OpenID Connect: one provider per sign-in host, kept in an LRU (facts/identity 0.4). */
export class Protocol {
  readonly #ctx: Ctx;
  readonly #parts: ProtocolParts;
  readonly #providers = new Map<string, Provider>();
  readonly #peers = new WeakMap<IncomingMessage, NonNullable<NodeExchange['peer']>>();

  constructor(ctx: Ctx, parts: ProtocolParts) {
    this.#ctx = ctx;
    this.#parts = parts;
  }

  provider(realm: Realm): Provider {
    const known = this.#providers.get(realm.host);
    if (known) {
      this.#providers.delete(realm.host);
      this.#providers.set(realm.host, known);
      return known;
    }
    const made = this.#make(realm);
    this.#providers.set(realm.host, made);
    if (this.#providers.size > MAX_PROVIDERS) this.#providers.delete(this.#providers.keys().next().value as string);
    return made;
  }

  /** Hands an exchange to the realm's provider. `/mtls` is the same surface, reached with a client certificate. */
  async handle({ req, res, hostname, peer }: NodeExchange): Promise<void> {
    const realm = await this.#parts.realms.onHost(hostname);
    if (peer) this.#peers.set(req, peer);
    // The library writes URLs by the Host header; what a browser sees has the port in it.
    req.headers.host = new URL(this.#parts.realms.issuer(realm)).host;
    const url = req.url ?? '/';
    if (url.startsWith('/mtls/')) {
      (req as IncomingMessage & { originalUrl?: string }).originalUrl = url;
      req.url = url.slice('/mtls'.length);
    }
    await (this.provider(realm).callback() as (req: IncomingMessage, res: ServerResponse) => Promise<void>)(req, res);
  }

  #make(realm: Realm): Provider {
    const { realms, keys, exchange } = this.#parts;
    const issuer = realms.issuer(realm);
    const provider = new Provider(issuer, this.#configuration(realm));
    provider.registerGrantType(TOKEN_EXCHANGE, async context => exchange.handle(context, issuer, realm, this.#peers.get(context.req)?.thumbprint), [...EXCHANGE_PARAMETERS], ['audience', 'resource']);
    provider.on('server_error', (_context, error) => this.#ctx.log.error({ err: error }, 'protocol error'));
    void keys;
    return provider;
  }

  #configuration(realm: Realm): Configuration {
    const { box, keys, clients, people, access, workloads } = this.#parts;
    const ctx = this.#ctx;
    const peerOf = (context: KoaContextWithOIDC) => this.#peers.get(context.req);
    return {
      adapter: (model: string) => new ProtocolState({ ctx, box, clients, envId: realm.env_id, model }),
      jwks: { keys: keys.jwks as never },
      clientDefaults: { id_token_signed_response_alg: 'EdDSA', grant_types: ['authorization_code'], response_types: ['code'] },
      enabledJWA: { idTokenSigningAlgValues: ['EdDSA', 'ES256', 'ML-DSA-65'] as never },
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
      features: {
        devInteractions: { enabled: false },
        pushedAuthorizationRequests: { enabled: true },
        clientCredentials: { enabled: true },
        revocation: { enabled: true },
        introspection: { enabled: true },
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
          certificateSubjectMatches: (context: KoaContextWithOIDC, property: string, expected: string) => property === 'tls_client_auth_subject_dn' && expected === `CN=m2m-${peerOf(context)?.workload}`,
        },
        resourceIndicators: {
          enabled: true,
          defaultResource: () => API,
          useGrantedResource: () => true,
          getResourceServerInfo: async (_context, _resource, client) => ({
            scope: (await workloads.find(client.clientId))?.scopes.join(' ') ?? '',
            audience: API,
            accessTokenTTL: LIFETIME.access,
            accessTokenFormat: 'jwt' as const,
            jwt: { sign: { alg: 'EdDSA' as const } },
          }),
        },
      },
      formats: {
        customizers: {
          jwt: async (_context, token, parts) => {
            Object.assign(parts.payload, await tokenClaims({ ctx, people, access, workloads, realm }, token as never));
            return parts;
          },
        },
      },
      ttl: {
        AccessToken: (_context, token) => token.resourceServer?.accessTokenTTL ?? LIFETIME.access,
        ClientCredentials: (_context, token) => token.resourceServer?.accessTokenTTL ?? LIFETIME.access,
        AuthorizationCode: LIFETIME.code,
        PushedAuthorizationRequest: LIFETIME.par,
        IdToken: LIFETIME.id,
        RefreshToken: LIFETIME.refresh,
        Grant: LIFETIME.refresh,
        Session: LIFETIME.session,
        Interaction: LIFETIME.interaction,
      },
      cookies: {
        names: { session: SESSION_COOKIE, interaction: INTERACTION_COOKIE, resume: '__Host-platform-resume' },
        keys: [box.fingerprint('cookie', realm.host)],
        long: { path: '/', httpOnly: true, secure: true, sameSite: 'lax', signed: true },
        short: { path: '/', httpOnly: true, secure: true, sameSite: 'lax', signed: true },
      },
      issueRefreshToken: (_context, client) => client.grantTypeAllowed('refresh_token'),
      rotateRefreshToken: true,
      // Gateway sessions reach thirty days; the sign-in session ends after seven (house 24).
      expiresWithSession: () => false,
      interactions: {
        url: (_context, interaction) => {
          const { params, uid, prompt } = interaction;
          const carried = ['client_id', 'redirect_uri', 'state', 'code_challenge', 'scope'].flatMap(name => (typeof params[name] === 'string' ? [[name, params[name] as string]] : []));
          return `/${prompt.name === 'login' ? 'sign-in' : 'consent'}?${new URLSearchParams([...carried, ['uid', uid]])}`;
        },
      },
      findAccount: async (_context, subject) => {
        const person = await people.byId(subject);
        if (person?.status !== 'active') return undefined;
        return { accountId: subject, claims: async () => ({ sub: subject, email: person.email, email_verified: person.email_verified, name: person.display_name ?? person.email }) };
      },
      loadExistingGrant: async context => {
        const { client, session, provider, params } = context.oidc;
        if (!client || !session?.accountId || client.clientId !== CONSOLE_CLIENT) return undefined;
        // First-party: what is asked for is granted, without a page in between (facts/identity 2).
        const existing = session.grantIdFor(client.clientId);
        const grant = (existing && (await provider.Grant.find(existing))) || new provider.Grant({ clientId: client.clientId, accountId: session.accountId });
        grant.addOIDCScope(String(params?.['scope'] ?? 'openid'));
        grant.addResourceScope(API, '');
        await grant.save();
        return grant;
      },
      renderError: (context, out) => {
        context.redirect(`/error?${new URLSearchParams({ error: out.error })}`);
      },
    };
  }
}
