import { isProblem, problemBody, type RawExchange, SYSTEM, type UserCaller } from '@platform/sdk';
import type { Apps } from '../apps/apps.ts';
import type { Ctx } from '../context.ts';
import { json, type Methods, readJson, visitOf } from '../door.ts';
import type { Guard } from '../session/guard.ts';
import type { LiveAccess } from '../live/live-access.ts';
import type { ProxyRules } from '../proxy/proxy-rules.ts';
import type { ServiceEnablement } from '../proxy/service-enablement.ts';
import type { SessionRecord } from '../session/session-store.ts';
import type { Upstream } from '../proxy/upstream.ts';
import { actionCall } from './action-call.ts';
import type { ActionRegistry, RegisteredAction } from './action-registry.ts';

interface Parts {
  readonly access: LiveAccess;
  readonly apps: Apps;
  readonly enablement: ServiceEnablement;
  readonly guard: Guard;
  readonly registry: ActionRegistry;
  readonly rules: ProxyRules;
  readonly upstream: Upstream;
}
type Params = Readonly<Record<string, unknown>>;
interface Dispatch {
  readonly exchange: RawExchange;
  readonly session: SessionRecord;
  readonly def: RegisteredAction;
  readonly params: Params;
  readonly envId: string;
}

const BODY_LIMIT = 1_048_576;
const ENV = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/;

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
    const { guard, registry, apps, rules, enablement } = this.#parts;
    const visit = visitOf(exchange);
    const session = await guard.mutation(visit, 'csrf');
    const name = exchange.params['action'] ?? '';
    const def = await registry.find(name);
    if (!def) throw this.#ctx.problem('action_not_found', { detail: `No service registered ${name.slice(0, 100)}.` });
    const asked = this.#asked(def, await readJson(this.#ctx, exchange.request, BODY_LIMIT));
    const envId = asked.envId ?? session.env_id;
    const params = namesEnv(def) ? { ...asked.params, env_id: envId } : asked.params;
    if (!(await this.#permits(session, def, envId)))
      throw this.#ctx.problem('policy_denied', {
        detail: `You may not do this in the environment: ${def.service} asks for ${def.policy_action}.`,
      });
    const app = await apps.of(visit);
    if (!app) throw this.#ctx.problem('not_whitelisted', { detail: 'The host belongs to no application.' });
    const call = actionCall(def, params);
    if (!call) throw this.#ctx.problem('malformed', { detail: 'A parameter of the path is empty or is no name.' });
    rules.require(app, { service: def.service, method: def.method, path: call.path.split('?')[0] as string, scopes: session.scopes });
    if (envId !== SYSTEM.envId) await enablement.require(envId, def.service);
    const bearer = await this.#parts.upstream.bearerFor(session, asked.envId, def.service);
    const response = await this.#parts.upstream.call({
      ...call,
      service: def.service,
      method: def.method,
      bearer,
      correlationId: exchange.correlationId,
      session,
      target: asked.envId,
      signal: exchange.request.signal,
    });
    return this.#retried({ exchange, session, def, params, envId }, response);
  }

  /** Parameters that fit the action's schema, and the one environment that is meant, if any is named. */
  #asked(def: RegisteredAction, body: unknown): { params: Params; envId: string | undefined } {
    const {
      params = {},
      target_env_id: target,
      ...unknown
    } = (typeof body === 'object' && body !== null ? body : { '': body }) as Record<string, unknown>;
    const bad = (detail: string, errors?: readonly object[]) =>
      this.#ctx.problem('malformed', { detail, ...(errors ? { extra: { errors } } : {}) });
    if (body !== undefined && (Object.keys(unknown).length > 0 || Array.isArray(body)))
      throw bad('Send { params?: object, target_env_id?: string }.');
    const faults =
      typeof params === 'object' && params !== null && !Array.isArray(params)
        ? def.faults(params)
        : [{ pointer: '/params', code: 'type', message: 'must be an object' }];
    if (faults.length > 0) throw bad('The parameters do not fit the action; errors says which.', faults.slice(0, 10));
    if (target !== undefined && (typeof target !== 'string' || !ENV.test(target))) throw bad('target_env_id is the id of an environment.');
    if (target !== undefined && def.target_env !== true) throw bad('This action takes no target environment.');
    const named = namesEnv(def) ? (params as Params)['env_id'] : undefined;
    // One request is about one environment: policy is asked where the call will have its effect.
    if (typeof named === 'string' && target !== undefined && named !== target)
      throw this.#ctx.problem('target_mismatch', { detail: 'params.env_id and target_env_id differ.' });
    return { params: params as Params, envId: target ?? (typeof named === 'string' ? named : undefined) };
  }

  async #permits(session: SessionRecord, { policy_action: action }: RegisteredAction, envId: string): Promise<boolean> {
    const caller: UserCaller = {
      kind: 'user',
      subject: session.user_id,
      userId: session.user_id,
      service: undefined,
      clientId: session.client_id,
      envId,
      authEnvId: session.auth_env,
      thumbprint: undefined,
      vertical: undefined,
      platformAdmin: await this.#parts.access.isPlatformAdmin(session),
      bound: false,
      email: session.email,
      emailVerified: false,
      sessionId: session.sid,
    };
    return this.#ctx.policy.allows(caller, action);
  }

  /**
   * What a person may not say, the platform says for an operator: once, with the producer's identity, into the environment of the request
   * (BUS-077..079). An operator may produce on the platform itself: a tenant that gives out this right speaks for nobody but the tenant.
   */
  async #retried(dispatch: Dispatch, response: Response): Promise<Response> {
    const { def, session, envId, params, exchange } = dispatch;
    if (response.status !== 403 || !isProduce(def)) return response;
    const text = await response.text();
    if (codeOf(text) !== 'event_ownership' || !(await this.#permits(session, def, SYSTEM.envId))) return new Response(text, response);
    const fields = {
      action: def.action,
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

const namesEnv = ({ params_schema: schema }: RegisteredAction): boolean =>
  'env_id' in ((schema as { properties?: object }).properties ?? {});

function codeOf(text: string): unknown {
  try {
    return (JSON.parse(text) as { code?: unknown }).code;
  } catch {
    return undefined;
  }
}
