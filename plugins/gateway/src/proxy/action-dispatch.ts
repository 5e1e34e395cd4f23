import {
  isProblem,
  type PermittedCall,
  problemBody,
  type RawExchange,
  type RegisteredAction,
  SYSTEM,
  type UserCaller,
} from '@platform/sdk';
import type { Apps } from '../apps/apps.ts';
import type { Ctx } from '../context.ts';
import { json, type Methods, visitOf } from '../door.ts';
import type { LiveAccess } from '../live/live-access.ts';
import type { Guard } from '../session/guard.ts';
import type { SessionRecord } from '../session/session-store.ts';
import type { ProxyRules } from './proxy-rules.ts';
import type { ServiceEnablement } from './service-enablement.ts';
import type { Upstream } from './upstream.ts';

interface Parts {
  readonly access: LiveAccess;
  readonly apps: Apps;
  readonly enablement: ServiceEnablement;
  readonly guard: Guard;
  readonly rules: ProxyRules;
  readonly upstream: Upstream;
}
interface Dispatch {
  readonly exchange: RawExchange;
  readonly session: SessionRecord;
  readonly person: UserCaller;
}

/**
 * `POST /bff/action/{action}`: what a service registered as an action, called for the person of the session once policy allows it (GWY-029;
 * G-BFF-06).
 */
export class ActionDispatch {
  readonly #ctx: Ctx;
  readonly #parts: Parts;

  constructor(ctx: Ctx, parts: Parts) {
    this.#ctx = ctx;
    this.#parts = parts;
  }

  readonly methods: Methods = { POST: exchange => this.#dispatch(exchange) };

  async #dispatch(exchange: RawExchange): Promise<Response> {
    const session = await this.#parts.guard.mutation(visitOf(exchange), 'csrf');
    const { params, targetEnvId } = this.#asked(await exchange.json({ of: 'any' }));
    const person = await this.#person(session);
    return this.#ctx.actions.send(exchange.params['action'] ?? '', { params, targetEnvId, onBehalfOf: person }, call =>
      this.#forward({ exchange, session, person }, call),
    );
  }

  #asked(body: unknown = {}): { params: Readonly<Record<string, unknown>>; targetEnvId: string | undefined } {
    const bad = (detail: string) => this.#ctx.problem('malformed', { detail });
    if (typeof body !== 'object' || body === null || Array.isArray(body)) throw bad('Send { params?: object, target_env_id?: string }.');
    const { params = {}, target_env_id: target, ...unknown } = body as Record<string, unknown>;
    if (Object.keys(unknown).length > 0) throw bad('Send { params?: object, target_env_id?: string }.');
    if (target !== undefined && typeof target !== 'string') throw bad('target_env_id is the id of an environment.');
    // Whether they are parameters at all is seen with the schema of the action.
    return { params: params as Readonly<Record<string, unknown>>, targetEnvId: target };
  }

  async #person(session: SessionRecord): Promise<UserCaller> {
    return {
      kind: 'user',
      subject: session.user_id,
      userId: session.user_id,
      service: undefined,
      clientId: session.client_id,
      envId: session.env_id,
      authEnvId: session.auth_env,
      thumbprint: undefined,
      vertical: undefined,
      platformAdmin: await this.#parts.access.isPlatformAdmin(session),
      bound: false,
      email: session.email,
      emailVerified: false,
      sessionId: session.sid,
    };
  }

  /** Sends what policy allows with a token of the session, where the application may call it. */
  async #forward(dispatch: Dispatch, call: PermittedCall): Promise<Response> {
    const { apps, rules, enablement, upstream } = this.#parts;
    const { exchange, session } = dispatch;
    const { action, path, headers, body, envId, targetEnvId: target } = call;
    const { service, method } = action;
    const key = exchange.request.headers.get('idempotency-key');
    const app = await apps.of(visitOf(exchange));
    if (!app) throw this.#ctx.problem('not_whitelisted', { detail: 'The host belongs to no application.' });
    rules.require(app, { service, method, path: path.split('?')[0] as string, scopes: session.scopes });
    if (envId !== SYSTEM.envId) await enablement.require(envId, service);
    const bearer = await upstream.bearerFor(session, target, service);
    const response = await upstream.call({
      service,
      path,
      method,
      headers: { ...headers, ...(key === null ? {} : { 'idempotency-key': key }) },
      body,
      bearer,
      correlationId: exchange.correlationId,
      session,
      target,
      signal: exchange.request.signal,
    });
    return this.#retried(dispatch, call, response);
  }

  /**
   * What a person may not say, the platform says for an operator: once, with the producer's identity, into the environment of the request
   * (BUS-077..079). An operator may produce on the platform itself: a tenant that gives out this right speaks for nobody but the tenant.
   */
  async #retried({ exchange, session, person }: Dispatch, { action, envId, params }: PermittedCall, response: Response): Promise<Response> {
    if (response.status !== 403 || !isProduce(action)) return response;
    const text = await response.text();
    const isOperator = () => this.#ctx.policy.allows({ ...person, envId: SYSTEM.envId }, action.policy_action);
    if (codeOf(text) !== 'event_ownership' || !(await isOperator())) return new Response(text, response);
    const fields = {
      action: action.action,
      user_id: session.user_id,
      env_id: envId,
      event_type: params['event_type'],
      correlation_id: exchange.correlationId,
    };
    try {
      const produced = await this.#ctx.services.bus.produce({
        body: { correlation_id: exchange.correlationId, ...params, env_id: envId } as never,
      });
      this.#ctx.log.info({ ...fields, message_id: produced.message_id }, 'produced for an operator');
      return json(produced);
    } catch (error) {
      if (!isProblem(error) || error.service !== 'bus') throw error;
      this.#ctx.log.warn({ ...fields, code: error.code }, 'an operator could not produce');
      const body = JSON.stringify(problemBody(error, exchange.correlationId));
      return new Response(body, {
        status: error.status,
        headers: { ...error.headers, 'content-type': 'application/problem+json; charset=utf-8' },
      });
    }
  }
}

/** Only the platform's own action: what a vertical registered never borrows the platform's voice. */
const isProduce = ({ vertical, service, method, path }: RegisteredAction): boolean =>
  vertical === 'platform' && service === 'bus' && method === 'POST' && path === '/v1/produce';

function codeOf(text: string): unknown {
  try {
    return (JSON.parse(text) as { code?: unknown }).code;
  } catch {
    return undefined;
  }
}
