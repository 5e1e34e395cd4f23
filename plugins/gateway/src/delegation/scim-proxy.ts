import { isProblem, type RawExchange, SYSTEM } from '@platform/sdk';
import type { Apps } from '../apps/apps.ts';
import type { AuthHosts } from '../apps/auth-hosts.ts';
import type { Ctx } from '../context.ts';
import { type Methods, visitOf } from '../door.ts';
import type { Guard } from '../session/guard.ts';
import type { ProxyRules } from '../proxy/proxy-rules.ts';
import type { ServiceEnablement } from '../proxy/service-enablement.ts';
import type { SessionRecord } from '../session/session-store.ts';
import { uploadOf } from '../proxy/upload.ts';
import { forwarded, type Upstream } from '../proxy/upstream.ts';
import { DELEGATOR, type Delegator } from './delegator.ts';
import type { Staff } from './staff.ts';

interface Parts {
  readonly apps: Apps;
  readonly rules: ProxyRules;
  readonly guard: Guard;
  readonly staff: Staff;
  readonly delegator: Delegator;
  readonly enablement: ServiceEnablement;
  readonly hosts: AuthHosts;
  readonly upstream: Upstream;
}

const USERS = '/scim/v2/Users';
const ENV = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/;

/**
 * `/delegate/scim/users…`: the directory of one environment (RFC 7644), asked by the delegator for staff that may read or change it there
 * (GWY-041).
 */
export class ScimProxy {
  readonly #ctx: Ctx;
  readonly #parts: Parts;

  constructor(ctx: Ctx, parts: Parts) {
    this.#ctx = ctx;
    this.#parts = parts;
  }

  readonly users: Methods = { GET: exchange => this.#read(exchange), POST: exchange => this.#write(exchange) };
  readonly user: Methods = {
    GET: exchange => this.#read(exchange),
    PUT: exchange => this.#write(exchange),
    PATCH: exchange => this.#write(exchange),
    DELETE: exchange => this.#write(exchange),
  };

  async #read(exchange: RawExchange): Promise<Response> {
    const session = await this.#parts.guard.session(visitOf(exchange));
    const envId = await this.#env(exchange, session);
    await this.#parts.staff.require(session, envId, ['scim:read', 'scim:write']);
    return this.#forward(exchange, envId, session);
  }

  async #write(exchange: RawExchange): Promise<Response> {
    const session = await this.#parts.guard.mutation(visitOf(exchange), 'csrf');
    const envId = await this.#env(exchange, session);
    await this.#parts.staff.require(session, envId, ['scim:write']);
    this.#ctx.log.info(
      { user_id: session.user_id, env_id: envId, method: exchange.request.method, target: exchange.params['id'] },
      'directory change',
    );
    return this.#forward(exchange, envId, session);
  }

  async #forward(exchange: RawExchange, envId: string, session: SessionRecord): Promise<Response> {
    const { delegator, enablement, hosts, upstream } = this.#parts;
    const { request, params, correlationId } = exchange;
    if (envId !== SYSTEM.envId) await enablement.require(envId, 'auth');
    const hostname = await hosts.of(envId).catch((cause: unknown) => {
      throw this.#ctx.problem(isProblem(cause) && cause.status < 500 ? 'target_denied' : 'not_ready', { cause });
    });
    const id = params['id'];
    if (id === '.' || id === '..') throw this.#ctx.problem('malformed', { detail: 'The id of a user is not a path.' });
    const own = await delegator.token();
    const body = await uploadOf(this.#ctx, request);
    const response = await upstream.call({
      service: 'auth',
      path: `${USERS}${id === undefined ? '' : `/${encodeURIComponent(id)}`}${new URL(request.url).search}`,
      method: request.method,
      headers: forwarded(request.headers),
      bearer: { token: own.token, as: DELEGATOR },
      correlationId,
      session,
      target: envId,
      hostname,
      body,
      signal: request.signal,
    });
    // The delegator was not believed; the session of the person is as good as before.
    if (response.status === 401) {
      await response.body?.cancel();
      delegator.discard(own);
      throw delegator.unavailable('its token was refused by the directory');
    }
    return response;
  }

  /** The environment that is meant. An application that may not reach the identity service does not reach it this way either (GWY-066). */
  async #env(exchange: RawExchange, session: SessionRecord): Promise<string> {
    const { request } = exchange;
    const app = await this.#parts.apps.of(visitOf(exchange));
    if (!app) throw this.#ctx.problem('not_whitelisted', { detail: 'The host belongs to no application.' });
    this.#parts.rules.require(app, { service: 'auth', method: request.method, path: USERS, scopes: session.scopes });
    const named = request.headers.get('x-bff-target-env-id');
    if (named === null) return session.env_id;
    if (!ENV.test(named)) throw this.#ctx.problem('target_denied');
    return named;
  }
}
