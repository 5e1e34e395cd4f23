import { admits, type ProblemBody, type RawExchange } from '@platform/sdk';
import type { Apps, Visit } from './apps/apps.ts';
import type { Ctx } from './context.ts';
import { failurePage } from './failure-page.ts';

/** `extra` goes out with any answer, a refusal included: a cookie that must be cleared is put there first. */
export type Handler = (exchange: RawExchange, extra: Headers) => Promise<Response>;
export type Methods = Readonly<Record<string, Handler>>;

const METHODS = 'GET, HEAD, POST, PUT, PATCH, DELETE';
const ASKED =
  'accept, content-type, if-match, if-none-match, range, idempotency-key, last-event-id, x-bff-csrf, x-bff-target-env-id, x-bff-target-org-id, x-bff-delegation-id, x-platform-correlation-id';
const EXPOSED =
  'etag, location, retry-after, content-disposition, content-range, accept-ranges, idempotent-replay, ratelimit, ratelimit-policy, deprecation, sunset, x-platform-correlation-id';
const PREFLIGHT_S = '600';

/** A raw door as browsers need it: methods, preflights, CORS for the application's own origin, and refusals it can read. */
export class Door {
  readonly #ctx: Ctx;
  readonly #apps: Apps;

  constructor(ctx: Ctx, apps: Apps) {
    this.#ctx = ctx;
    this.#apps = apps;
  }

  /** `pages`: a person may be looking, so a refusal is a page where HTML is accepted. */
  open(methods: Methods, options: { pages?: boolean } = {}): (exchange: RawExchange) => Promise<Response> {
    return async exchange => {
      const extra = new Headers();
      let response: Response;
      try {
        response = await this.#answer(methods, exchange, extra);
      } catch (error) {
        response = await this.#refusal(error, exchange, options.pages ?? false);
      }
      for (const [name, value] of extra) if (name !== 'set-cookie') response.headers.set(name, value);
      for (const cookie of extra.getSetCookie()) response.headers.append('set-cookie', cookie);
      return this.#shared(exchange, response);
    };
  }

  async #answer(methods: Methods, exchange: RawExchange, extra: Headers): Promise<Response> {
    const { method } = exchange.request;
    if (method === 'OPTIONS') return this.#preflight(exchange);
    const handler = methods[method] ?? methods['ANY'] ?? (method === 'HEAD' ? methods['GET'] : undefined);
    if (!handler) throw this.#ctx.problem('method_not_allowed', { headers: { allow: [...Object.keys(methods), 'OPTIONS'].join(', ') } });
    const response = await handler(exchange, extra);
    // What a service answered through the proxy was its own to judge: it was asked with the same Accept.
    const admitted = handler === methods['ANY'] || this.#isAdmitted(exchange, response);
    if (admitted && (method !== 'HEAD' || !response.body)) return response;
    // Nobody reads this body, and whoever makes it has to know.
    await response.body?.cancel();
    if (admitted) return new Response(null, response);
    const type = response.headers.get('content-type')?.split(';')[0];
    throw this.#ctx.problem('not_acceptable', { detail: `This is answered as ${type}; Accept does not admit it.` });
  }

  #isAdmitted({ request }: RawExchange, response: Response): boolean {
    const type = response.headers.get('content-type');
    if (!response.ok || type === null || !['GET', 'HEAD'].includes(request.method)) return true;
    return admits(request.headers.get('accept') ?? undefined, type);
  }

  #preflight(exchange: RawExchange): Response {
    if (exchange.request.headers.get('origin') !== this.#apps.originOf(exchange)) throw this.#ctx.problem('origin_denied');
    return new Response(null, {
      status: 204,
      headers: { 'access-control-allow-methods': METHODS, 'access-control-allow-headers': ASKED, 'access-control-max-age': PREFLIGHT_S },
    });
  }

  #shared(exchange: RawExchange, response: Response): Response {
    const { headers } = response;
    const origin = this.#apps.originOf(exchange);
    for (const name of [...headers.keys()])
      if (name.startsWith('access-control-') && !(exchange.request.method === 'OPTIONS')) headers.delete(name);
    if (exchange.request.headers.get('origin') === origin) {
      headers.set('access-control-allow-origin', origin);
      headers.set('access-control-allow-credentials', 'true');
      headers.set('access-control-expose-headers', EXPOSED);
    }
    headers.append('vary', 'Origin');
    headers.set('x-platform-correlation-id', exchange.correlationId);
    headers.set('x-content-type-options', 'nosniff');
    if (!headers.has('cache-control')) headers.set('cache-control', 'no-store');
    return response;
  }

  /** In the kernel's words, as a page where a person may be looking. */
  async #refusal(thrown: unknown, exchange: RawExchange, pages: boolean): Promise<Response> {
    const refused = exchange.refusal(thrown);
    if (!pages || !exchange.request.headers.get('accept')?.includes('text/html')) return refused;
    const page = failurePage((await refused.json()) as ProblemBody, { appOrigin: this.#apps.originOf(exchange) });
    return new Response(page.body, { status: refused.status, headers: { ...Object.fromEntries(refused.headers), ...page.headers } });
  }
}

/** The parts of an exchange that sessions and applications are judged by. */
export function visitOf({ hostname, tenant, ip, request }: RawExchange): Visit {
  return { hostname, tenant, ip, header: name => request.headers.get(name) ?? undefined };
}

export const json = (value: unknown, status = 200): Response =>
  new Response(JSON.stringify(value), { status, headers: { 'content-type': 'application/json; charset=utf-8' } });
