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

  async token(host: string, form: Record<string, string>, as?: string): Promise<TokenAnswer | TokenRefusal> {
    const answer = await this.#post(host, '/mtls/oauth/token', form, as);
    if ('refused' in answer) return answer;
    const body = answer.body as Partial<TokenAnswer>;
    if (typeof body.access_token !== 'string') throw this.#away('The token endpoint answered without a token.');
    return { ...body, access_token: body.access_token, expires_in: Number(body.expires_in ?? 0) };
  }

  /** RFC 7009. Never throws: a session ends whether or not the identity service heard of it. */
  async revoke(host: string, clientId: string, refreshToken: string): Promise<void> {
    try {
      const answer = await this.#post(host, '/mtls/oauth/revoke', { client_id: clientId, token: refreshToken, token_type_hint: 'refresh_token' });
      if ('refused' in answer) this.#ctx.log.warn({ status: answer.status, error: answer.refused }, 'refresh token not revoked');
    } catch (error) {
      this.#ctx.log.warn({ err: error }, 'refresh token not revoked');
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

  async #post(host: string, path: string, form: Record<string, string>, as?: string): Promise<{ body: unknown } | TokenRefusal> {
    const response = await this.#fetch(host, path, {
      method: 'POST',
      headers: { 'content-type': 'application/x-www-form-urlencoded', accept: 'application/json' },
      body: new URLSearchParams(form).toString(),
      ...(as ? { as } : {}),
    });
    const text = await response.text();
    if (response.status >= 500 || response.status === 429) throw this.#away(`${path} answered ${response.status}.`);
    const body = parsed(text);
    if (response.ok) return { body };
    const { error, error_description: description, code, detail } = body as Record<string, unknown>;
    const said = (value: unknown) => (typeof value === 'string' ? value : undefined);
    return { refused: said(error) ?? said(code) ?? 'invalid_request', status: response.status, description: said(description) ?? said(detail) };
  }

  async #fetch(host: string, path: string, init: { method: string; headers: Record<string, string>; body?: string; as?: string }): Promise<Response> {
    try {
      return await this.#ctx.backends.fetch('auth', path, { ...init, hostname: host, timeoutMs: TIMEOUT_MS, signal: AbortSignal.timeout(2 * TIMEOUT_MS) });
    } catch (cause) {
      throw this.#ctx.problem('identity_unavailable', { cause, detail: 'Try again in a moment.', headers: { 'retry-after': '2' } });
    }
  }

  #away(detail: string) {
    return this.#ctx.problem('identity_unavailable', { detail, headers: { 'retry-after': '2' } });
  }
}

export const isRefusal = (answer: TokenAnswer | TokenRefusal | string): answer is TokenRefusal => typeof answer === 'object' && 'refused' in answer;

/** Claims of a token that came straight from its issuer; whoever receives it verifies it. */
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
