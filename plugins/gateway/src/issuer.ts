import { isProblem } from '@platform/sdk';
import { createLocalJWKSet, errors, type JSONWebKeySet, type JWTPayload, jwtVerify } from 'jose';
import type { Ctx } from './context.ts';

export interface TokenAnswer {
  readonly access_token: string;
  readonly refresh_token?: string;
  readonly id_token?: string;
  readonly expires_in: number;
  readonly scope?: string;
}
/** The identity service said no (RFC 6749 §5.2). */
export interface TokenRefusal {
  readonly refused: string;
  readonly status: number;
  readonly description: string | undefined;
}

/** What the gateway shows beside the request: the certificate of one of its workloads, a proof of possession (RFC 9449). */
export interface Presented {
  readonly as?: string;
  readonly proof?: string;
}
export interface BackchannelAnswer {
  readonly auth_req_id: string;
  readonly expires_in: number;
  readonly interval: number;
}

const TOKEN_PATH = '/mtls/oauth/token';
/** OpenID CIBA 7.3. */
const DEFAULT_INTERVAL_S = 5;
const TIMEOUT_MS = 10_000;
const KEYS_FRESH_MS = 300_000;
const KEYS_RETRY_MS = 10_000;
const ALGORITHMS = ['EdDSA', 'Ed25519', 'ES256', 'ML-DSA-65'];

/** The identity service's protocol endpoints, reached over mutual TLS with the gateway's own certificate (RFC 8705). */
export class Issuer {
  readonly #ctx: Ctx;
  readonly #keys = new Map<string, { set: JSONWebKeySet; at: number }>();

  constructor(ctx: Ctx) {
    this.#ctx = ctx;
  }

  identifier(host: string): string {
    return this.#ctx.platform.publicOrigin(host);
  }

  /** RFC 9126. */
  async push(host: string, form: Record<string, string>): Promise<string | TokenRefusal> {
    const answer = await this.#post(host, '/mtls/oauth/par', form);
    if ('refused' in answer) return answer;
    const { request_uri: requestUri } = answer.body as { request_uri?: unknown };
    if (typeof requestUri !== 'string') throw this.#away('The pushed request was answered without request_uri.');
    return requestUri;
  }

  async token(host: string, form: Record<string, string>, by: Presented = {}): Promise<TokenAnswer | TokenRefusal> {
    const answer = await this.#post(host, TOKEN_PATH, form, by);
    if ('refused' in answer) return answer;
    const body = answer.body as Partial<TokenAnswer>;
    if (typeof body.access_token !== 'string') throw this.#away('The token endpoint answered without a token.');
    return { ...body, access_token: body.access_token, expires_in: Number(body.expires_in ?? 0) };
  }

  /** Where a proof of possession for the token endpoint of a host is good (RFC 9449 4.2). */
  tokenEndpoint(host: string): string {
    return this.identifier(host) + TOKEN_PATH;
  }

  /** OpenID CIBA: asks somebody at the identity service of a host for consent. */
  async backchannel(host: string, form: Record<string, string>, by: Presented): Promise<BackchannelAnswer | TokenRefusal> {
    const answer = await this.#post(host, '/mtls/oauth/bc-authorize', form, by);
    if ('refused' in answer) return answer;
    const { auth_req_id: id, expires_in: expires, interval } = answer.body as Record<string, unknown>;
    if (typeof id !== 'string' || typeof expires !== 'number')
      throw this.#away('The backchannel request was answered without auth_req_id.');
    return { auth_req_id: id, expires_in: expires, interval: typeof interval === 'number' ? interval : DEFAULT_INTERVAL_S };
  }

  /** RFC 7591 over mutual TLS: a workload is told the client that its certificate makes it. */
  async register(host: string, metadata: object, by: Presented): Promise<string | TokenRefusal> {
    const answer = await this.#send(host, '/mtls/oauth/register', { 'content-type': 'application/json' }, JSON.stringify(metadata), by);
    if ('refused' in answer) return answer;
    const { client_id: clientId } = answer.body as { client_id?: unknown };
    if (typeof clientId !== 'string') throw this.#away('The registration was answered without client_id.');
    return clientId;
  }

  /** RFC 7009. Never throws: a session ends whether or not the identity service heard of it. */
  async revoke(host: string, clientId: string, refreshToken: string): Promise<void> {
    try {
      const answer = await this.#post(host, '/mtls/oauth/revoke', {
        client_id: clientId,
        token: refreshToken,
        token_type_hint: 'refresh_token',
      });
      if ('refused' in answer) this.#ctx.log.warn({ status: answer.status, error: answer.refused }, 'refresh token not revoked');
    } catch (error) {
      this.#ctx.log.warn({ err: error }, 'refresh token not revoked');
    }
  }

  /** RP-initiated logout: ends the sign-in session that the tokens came from, or all of the person's. Never throws, as {@link revoke}. */
  async endSession(
    host: string,
    { clientId, idToken, sid, everywhere }: { clientId: string; idToken: string; sid: string; everywhere: boolean },
  ): Promise<void> {
    try {
      const form = { client_id: clientId, id_token_hint: idToken, logout_hint: sid, ...(everywhere ? { everywhere: 'true' } : {}) };
      const answer = await this.#post(host, '/mtls/oauth/end-session', form);
      if ('refused' in answer) this.#ctx.log.warn({ status: answer.status, error: answer.refused }, 'the sign-in session was not ended');
    } catch (error) {
      this.#ctx.log.warn({ err: error }, 'the sign-in session was not ended');
    }
  }

  /** Claims of an id token that this issuer signed for this client and this sign-in, or `undefined`. */
  async idClaims(host: string, token: string, expected: { clientId: string; nonce: string }): Promise<JWTPayload | undefined> {
    for (const again of [false, true]) {
      try {
        const { payload } = await jwtVerify(token, createLocalJWKSet(await this.#keySet(host, again)), {
          issuer: this.identifier(host),
          audience: expected.clientId,
          algorithms: ALGORITHMS,
          clockTolerance: 30,
          currentDate: this.#ctx.clock.now(),
        });
        return payload['nonce'] === expected.nonce ? payload : undefined;
      } catch (error) {
        if (error instanceof errors.JWKSNoMatchingKey && !again) continue;
        if (isProblem(error)) throw error;
        this.#ctx.log.warn({ err: error }, 'id token refused');
        return undefined;
      }
    }
    return undefined;
  }

  async #keySet(host: string, renew: boolean): Promise<JSONWebKeySet> {
    const now = this.#ctx.clock.now().getTime();
    const known = this.#keys.get(host);
    if (known && now - known.at < (renew ? KEYS_RETRY_MS : KEYS_FRESH_MS)) return known.set;
    const response = await this.#fetch(host, '/.well-known/jwks.json', { method: 'GET', headers: { accept: 'application/json' } });
    if (response.status !== 200) throw this.#away(`The keys were answered with ${response.status}.`);
    const set = (await response.json()) as JSONWebKeySet;
    this.#keys.set(host, { set, at: now });
    return set;
  }

  #post(host: string, path: string, form: Record<string, string>, by: Presented = {}): Promise<{ body: unknown } | TokenRefusal> {
    return this.#send(host, path, { 'content-type': 'application/x-www-form-urlencoded' }, new URLSearchParams(form).toString(), by);
  }

  async #send(
    host: string,
    path: string,
    headers: Record<string, string>,
    body: string,
    { as, proof }: Presented,
  ): Promise<{ body: unknown } | TokenRefusal> {
    const response = await this.#fetch(host, path, {
      method: 'POST',
      headers: { ...headers, accept: 'application/json', ...(proof ? { dpop: proof } : {}) },
      body,
      ...(as ? { as } : {}),
    });
    const text = await response.text();
    if (response.status >= 500 || response.status === 429) throw this.#away(`${path} answered ${response.status}.`);
    const answered = parsed(text);
    if (response.ok) return { body: answered };
    const { error, error_description: description, code, detail } = answered as Record<string, unknown>;
    const said = (value: unknown) => (typeof value === 'string' ? value : undefined);
    return {
      refused: said(error) ?? said(code) ?? 'invalid_request',
      status: response.status,
      description: said(description) ?? said(detail),
    };
  }

  async #fetch(
    host: string,
    path: string,
    init: { method: string; headers: Record<string, string>; body?: string; as?: string },
  ): Promise<Response> {
    try {
      return await this.#ctx.backends.fetch('auth', path, {
        ...init,
        hostname: host,
        timeoutMs: TIMEOUT_MS,
        signal: AbortSignal.timeout(2 * TIMEOUT_MS),
      });
    } catch (cause) {
      throw this.#ctx.problem('identity_unavailable', { cause, detail: 'Try again in a moment.', headers: { 'retry-after': '2' } });
    }
  }

  #away(detail: string) {
    return this.#ctx.problem('identity_unavailable', { detail, headers: { 'retry-after': '2' } });
  }
}

export const isRefusal = (answer: object | string): answer is TokenRefusal => typeof answer === 'object' && 'refused' in answer;

/** Claims of a token that came straight from its issuer; its receiver verifies it. */
export function claimsOf(token: string): Record<string, unknown> | undefined {
  const body = parsed(Buffer.from(token.split('.')[1] ?? '', 'base64url').toString('utf8'));
  return typeof body === 'object' && body !== null && Object.keys(body).length > 0 ? (body as Record<string, unknown>) : undefined;
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text) ?? {};
  } catch {
    return {};
  }
}
