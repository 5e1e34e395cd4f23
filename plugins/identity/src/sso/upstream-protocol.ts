import type { Cache } from '@platform/sdk';
import { createLocalJWKSet, type JSONWebKeySet, type JWTPayload, jwtVerify } from 'jose';
import type { Ctx } from '../context.ts';
import { fetchOutside } from '../outside.ts';

export interface Discovered {
  readonly issuer: string;
  readonly authorization_endpoint: string;
  readonly token_endpoint: string;
  readonly jwks_uri: string;
  readonly userinfo_endpoint?: string;
  readonly token_endpoint_auth_methods_supported?: readonly string[];
  readonly authorization_response_iss_parameter_supported?: boolean;
}
interface Redeeming {
  readonly code: string;
  readonly verifier: string;
  readonly nonce: string;
  readonly clientId: string;
  readonly secret: string;
  readonly redirectUri: string;
}

const KNOWN_MS = 600_000;
const KNOWN = 200;
/** What is signed by a key that everybody may know: never `none`, never a shared secret. */
const ALGORITHMS = ['RS256', 'RS384', 'RS512', 'PS256', 'PS384', 'PS512', 'ES256', 'ES384', 'ES512', 'EdDSA', 'Ed25519'];

/**
 * The calls of a relying party: discovery, the token endpoint, and the keys its identity tokens are signed with (OpenID Connect Core,
 * Discovery).
 */
export class UpstreamProtocol {
  readonly #ctx: Ctx;
  readonly #known: Cache<Discovered>;

  constructor(ctx: Ctx) {
    this.#ctx = ctx;
    this.#known = ctx.cache({ max: KNOWN, ttl: KNOWN_MS });
  }

  /** One question for all who sign in there, so nobody who goes away ends it for the others: it has its own deadline. */
  discover(issuer: string): Promise<Discovered> {
    return this.#known.get(issuer, () => this.#discover(issuer));
  }

  async #discover(issuer: string): Promise<Discovered> {
    const document = (await this.#json(`${issuer.replace(/\/$/, '')}/.well-known/openid-configuration`)) as Partial<Discovered>;
    // Discovery 4.3: a provider that answers in another's name is not believed.
    if (document.issuer !== issuer) throw this.#away(new Error('the issuer of the discovery document is another'));
    for (const name of ['authorization_endpoint', 'token_endpoint', 'jwks_uri'] as const) {
      if (!this.#acceptable(document[name])) throw this.#away(new Error(`${name} is no address to go to`));
    }
    return document as Discovered;
  }

  /** The claims of the person the code stands for; nothing when the provider does not stand by the code, or its token does not hold. */
  async redeem(
    provider: Discovered,
    { code, verifier, nonce, clientId, secret, redirectUri }: Redeeming,
    signal: AbortSignal,
  ): Promise<JWTPayload | undefined> {
    const form = new URLSearchParams({ grant_type: 'authorization_code', code, code_verifier: verifier, redirect_uri: redirectUri });
    const headers: Record<string, string> = { accept: 'application/json', 'content-type': 'application/x-www-form-urlencoded' };
    const methods = provider.token_endpoint_auth_methods_supported ?? ['client_secret_basic'];
    // RFC 6749 2.3.1: both halves are form-encoded first.
    if (methods.includes('client_secret_basic'))
      headers['authorization'] = `Basic ${Buffer.from(`${formEncoded(clientId)}:${formEncoded(secret)}`).toString('base64')}`;
    else for (const [name, value] of Object.entries({ client_id: clientId, client_secret: secret })) form.set(name, value);
    const { status, text } = await fetchOutside(this.#ctx, new URL(provider.token_endpoint), {
      method: 'POST',
      headers,
      body: form.toString(),
      signal,
    }).catch(cause => {
      throw this.#away(cause);
    });
    if (status >= 500) throw this.#away(new Error(`the token endpoint answered ${status}`));
    if (status !== 200) {
      this.#ctx.log.info({ status, issuer: provider.issuer }, 'a code of the provider was not redeemed');
      return undefined;
    }
    const keys = (await this.#json(provider.jwks_uri, signal)) as JSONWebKeySet;
    try {
      const { id_token: token, access_token: access } = JSON.parse(text) as { id_token?: string; access_token?: string };
      const { payload } = await jwtVerify(String(token), createLocalJWKSet(keys), {
        issuer: provider.issuer,
        audience: clientId,
        algorithms: ALGORITHMS,
        requiredClaims: ['sub', 'iat', 'exp', 'nonce'],
        clockTolerance: 60,
      });
      // Core 3.1.3.7: for nobody else, and for this very sign-in.
      const foreign = Array.isArray(payload.aud) && payload.aud.length > 1 && payload['azp'] !== clientId;
      if (payload['nonce'] !== nonce || foreign) return undefined;
      return payload['email'] === undefined && access
        ? { ...(await this.#userinfo(provider, access, payload.sub, signal)), ...payload }
        : payload;
    } catch (error) {
      this.#ctx.log.warn({ err: error, issuer: provider.issuer }, 'an identity token of the provider does not hold');
      return undefined;
    }
  }

  /** Claims that the identity token leaves out (Core 5.4). They are somebody else's unless the subject is the same (5.3.2). */
  async #userinfo(
    { userinfo_endpoint: address }: Discovered,
    token: string,
    subject: string | undefined,
    signal: AbortSignal,
  ): Promise<JWTPayload> {
    if (address === undefined) return {};
    const claims = (await this.#json(address, signal, { authorization: `Bearer ${token}` })) as JWTPayload;
    return claims.sub === subject ? claims : {};
  }

  async #json(address: string, signal?: AbortSignal, headers: Readonly<Record<string, string>> = {}): Promise<object> {
    try {
      if (!this.#acceptable(address)) throw new Error('in production the provider speaks HTTPS');
      const { status, text } = await fetchOutside(this.#ctx, new URL(address), {
        headers: { accept: 'application/json', ...headers },
        signal,
      });
      const answer: unknown = status === 200 ? JSON.parse(text) : undefined;
      if (typeof answer !== 'object' || answer === null) throw new Error(`the provider answered ${status}`);
      return answer;
    } catch (cause) {
      throw this.#away(cause);
    }
  }

  #acceptable(address: string | undefined): boolean {
    if (!address || !URL.canParse(address)) return false;
    const { protocol } = new URL(address);
    return protocol === 'https:' || (protocol === 'http:' && !this.#ctx.platform.production);
  }

  #away(cause: unknown) {
    return this.#ctx.problem('sso_unavailable', { cause, detail: 'The provider does not answer as it should. Try again in a moment.' });
  }
}

const formEncoded = (text: string) => new URLSearchParams({ x: text }).toString().slice(2);
