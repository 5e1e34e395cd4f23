import { isProblem, type RawExchange, SYSTEM } from '@platform/sdk';
import type { Apps } from '../apps/apps.ts';
import type { Ctx } from '../context.ts';
import type { Delegations } from '../delegation/delegations.ts';
import { type Methods, visitOf } from '../door.ts';
import type { Guard } from '../session/guard.ts';
import type { ProxyRules } from './proxy-rules.ts';
import type { ServiceEnablement } from './service-enablement.ts';
import { uploadOf } from './upload.ts';
import { forwarded, type Upstream } from './upstream.ts';

const SAFE = new Set(['GET', 'HEAD', 'OPTIONS']);
const ID = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/;

interface Parts {
  readonly apps: Apps;
  readonly guard: Guard;
  readonly rules: ProxyRules;
  readonly enablement: ServiceEnablement;
  readonly upstream: Upstream;
  readonly delegations: Delegations;
}

/** `/proxy/{service}/…`: session, binding, CSRF, whitelist, enablement, token, forward, in this order (GWY-051). */
export class ServiceProxy {
  readonly #ctx: Ctx;
  readonly #parts: Parts;

  constructor(ctx: Ctx, parts: Parts) {
    this.#ctx = ctx;
    this.#parts = parts;
  }

  readonly methods: Methods = { ANY: exchange => this.#forward(exchange) };

  async #forward(exchange: RawExchange): Promise<Response> {
    const { guard, rules, enablement, upstream, delegations } = this.#parts;
    const { request } = exchange;
    const visit = visitOf(exchange);
    const session = SAFE.has(request.method) ? await guard.session(visit) : await guard.mutation(visit, 'csrf');
    const { service, path, query, search } = this.#address(exchange);
    const app = await this.#parts.apps.of(visit);
    if (!app) throw this.#ctx.problem('not_whitelisted', { detail: 'The host belongs to no application.' });
    rules.require(app, { service, method: request.method, path, scopes: session.scopes });
    const named = this.#target(request, query);
    // A service acts for a customer with the customer's token or not at all (GWY-080).
    const delegation = request.headers.get('x-bff-delegation-id');
    const customer = delegation === null ? undefined : await delegations.use(session, delegation);
    if (customer && named !== undefined && named !== customer.envId)
      throw this.#ctx.problem('target_mismatch', { detail: 'The delegation is for another environment.' });
    const target = customer?.envId ?? named;
    const tenant = target ?? (session.env_id === SYSTEM.envId ? undefined : session.env_id);
    if (tenant !== undefined) await enablement.require(tenant, service);
    const bearer = customer?.bearer ?? (await upstream.bearerFor(session, target, service));
    const body = await uploadOf(this.#ctx, request);
    try {
      return await upstream.call({
        service,
        path: `${path}${search()}`,
        method: request.method,
        headers: forwarded(request.headers),
        bearer,
        correlationId: exchange.correlationId,
        session,
        target,
        body,
        signal: request.signal,
      });
    } catch (error) {
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
}
