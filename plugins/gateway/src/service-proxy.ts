import { isProblem, type RawExchange, SYSTEM } from '@platform/sdk';
import type { Apps } from './apps.ts';
import type { Ctx } from './context.ts';
import type { DelegatedToken, DelegatedTokens } from './delegated-tokens.ts';
import { type Methods, visitOf } from './door.ts';
import type { Guard } from './guard.ts';
import type { ProxyRules } from './proxy-rules.ts';
import type { ServiceEnablement } from './service-enablement.ts';
import type { SessionRecord } from './session-store.ts';
import type { Sessions } from './sessions.ts';
import { tooLarge, uploadOf } from './upload.ts';

const TIMEOUT_MS = 60_000;
const SAFE = new Set(['GET', 'HEAD', 'OPTIONS']);
/** Everything else a browser sends stays here, the cookie first of all (GWY-064). */
const REQUEST_HEADERS = ['accept', 'accept-encoding', 'accept-language', 'content-type', 'content-length', 'if-match', 'if-none-match', 'range', 'idempotency-key', 'last-event-id'] as const;
const HOP_BY_HOP = ['connection', 'keep-alive', 'proxy-authenticate', 'proxy-authorization', 'te', 'trailer', 'transfer-encoding', 'upgrade', 'set-cookie'] as const;
const ID = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/;

/** `/proxy/{service}/…`: session, binding, CSRF, whitelist, enablement, token, forward, in this order (GWY-051). */
export class ServiceProxy {
  readonly #ctx: Ctx;
  readonly #parts: { apps: Apps; guard: Guard; rules: ProxyRules; enablement: ServiceEnablement; delegated: DelegatedTokens; sessions: Sessions };

  constructor(ctx: Ctx, parts: { apps: Apps; guard: Guard; rules: ProxyRules; enablement: ServiceEnablement; delegated: DelegatedTokens; sessions: Sessions }) {
    this.#ctx = ctx;
    this.#parts = parts;
  }

  readonly methods: Methods = { ANY: exchange => this.#forward(exchange) };

  async #forward(exchange: RawExchange): Promise<Response> {
    const { guard, rules, enablement } = this.#parts;
    const { request } = exchange;
    const visit = visitOf(exchange);
    const session = SAFE.has(request.method) ? await guard.session(visit) : await guard.mutation(visit, 'csrf');
    const { service, path, query, search } = this.#address(exchange);
    const app = await this.#parts.apps.of(visit);
    if (!app) throw this.#ctx.problem('not_whitelisted', { detail: 'The host belongs to no application.' });
    rules.require(app, { service, method: request.method, path, scopes: session.scopes });
    const target = this.#target(request, query);
    const tenant = target ?? (session.env_id === SYSTEM.envId ? undefined : session.env_id);
    if (tenant !== undefined) await enablement.require(tenant, service);
    const { token, as } = await this.#token(session, target, service);
    const upload = await uploadOf(this.#ctx, request);
    try {
      const response = await this.#ctx.backends.fetch(service, `${path}${search()}`, {
        method: request.method,
        headers: {
          ...forwarded(request.headers),
          authorization: `Bearer ${token}`,
          'x-platform-correlation-id': exchange.correlationId,
          ...(target === undefined ? {} : { 'x-bff-target-env-id': target }),
        },
        body: upload.body,
        signal: upload.signal,
        timeoutMs: TIMEOUT_MS,
        ...(as === undefined ? {} : { as }),
      });
      return answered(response);
    } catch (error) {
      if (upload.exceeded()) throw tooLarge(this.#ctx);
      // The browser is gone; nobody reads this answer.
      if (request.signal.aborted && !isProblem(error)) throw this.#ctx.problem('malformed', { detail: 'The request was cancelled.' });
      throw error;
    }
  }

  /** The path as it was sent, still encoded; only what names the gateway's own door is taken away. */
  #address({ request, params }: RawExchange): { service: string; path: string; query: URLSearchParams; search: () => string } {
    const url = new URL(request.url);
    const service = params['service'] ?? '';
    const path = url.pathname.replace(/^\/proxy\/[^/]+/, '') || '/';
    if (path.startsWith('//')) throw this.#ctx.problem('malformed', { detail: 'The path has an empty first segment.' });
    // Changes to the members show here; without any it is what was sent, to the byte.
    return { service, path, query: url.searchParams, search: () => url.search };
  }

  /** The environment the call is for; an organization travels as a query member, and the environment wins (G-BFF-04). */
  #target(request: Request, query: URLSearchParams): string | undefined {
    const env = request.headers.get('x-bff-target-env-id') ?? undefined;
    const org = request.headers.get('x-bff-target-org-id') ?? undefined;
    if (env !== undefined) {
      const named = query.get('target_env_id');
      if (named !== null && named !== env) throw this.#ctx.problem('target_mismatch');
      if (!ID.test(env)) throw this.#ctx.problem('target_denied');
      if (query.has('target_org_id')) query.delete('target_org_id');
      return env;
    }
    if (org !== undefined) {
      const named = query.get('target_org_id');
      if (named !== null && named !== org) throw this.#ctx.problem('target_mismatch');
      if (named === null) query.set('target_org_id', org);
    }
    return undefined;
  }

  async #token(session: SessionRecord, target: string | undefined, service: string): Promise<DelegatedToken> {
    if (target !== undefined && target !== session.env_id) return this.#parts.delegated.tokenFor(session, target, service);
    return { token: await this.#parts.sessions.accessToken(session), as: undefined };
  }
}

export function forwarded(given: Headers): Record<string, string> {
  return Object.fromEntries(REQUEST_HEADERS.flatMap(name => (given.get(name) === null ? [] : [[name, given.get(name) as string]])));
}

/** The backend's answer, less what belongs to one connection or one host. What it sends is data here, never a page of this host. */
function answered(response: Response): Response {
  const headers = new Headers(response.headers);
  for (const name of HOP_BY_HOP) headers.delete(name);
  headers.set('content-security-policy', "default-src 'none'; sandbox");
  headers.set('x-content-type-options', 'nosniff');
  return new Response(response.body, { status: response.status, headers });
}
