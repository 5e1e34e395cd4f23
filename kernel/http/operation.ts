import { type AnyRoute, type Caller, type Gate, Id, isReply, type Request, type RouteEnv, SYSTEM, Type } from '@platform/sdk';
import { kernelProblem } from '../base/kernel-problem.ts';
import { actionKey } from '../identity/tokens/scope-name.ts';
import type { Identity } from '../identity/tokens/verifier.ts';
import type { PolicyEngine } from '../policy/policy-engine.ts';
import { traced } from '../telemetry/trace.ts';
import type { EnvironmentStates } from '../identity/environment-states.ts';
import { currentScope } from '../telemetry/request-scope.ts';
import { OpenedRequest } from './doors/opened-request.ts';
import { requireCursor } from './paging.ts';
import { onceAnswered } from './answers/raw-answer.ts';
import { keyedRequest, type ReplayedAnswers } from './answers/replayed-answers.ts';
import { isPassedOver, versionsOf } from './precondition.ts';
import { closed, readQuery, Validator } from './schema/schema.ts';
import type { Incoming, Outgoing } from './operation-call.ts';

export interface OperationHost {
  readonly service: string;
  readonly vertical: string;
  readonly engine: PolicyEngine;
  readonly actions: Readonly<Record<string, { principals?: readonly string[]; bound?: boolean | 'machine' }>>;
  /** Which environment its routes are about unless they say otherwise. */
  readonly env: RouteEnv;
  /** Absent where nothing is refused by the state of an environment. */
  readonly environments?: EnvironmentStates;
  /** Absent where no `Idempotency-Key` is honoured. */
  readonly answers?: ReplayedAnswers;
  /** Told about every answer, for metrics and contract coverage. */
  readonly seen?: (operation: string, status: number, problem: string | undefined) => void;
}

/** A request as any transport delivers it. The body is read only after the gate. */
interface OpenGate {
  readonly key: string;
  readonly principals: readonly string[] | undefined;
  readonly bound: boolean | 'machine';
}

/** Members the gateway and SSE clients add to any query. */
const TOLERATED = ['target_env_id', 'target_org_id', 'token', 'ticket'];
const DEFAULT_LIMIT = 1_048_576;
const SAFE: ReadonlySet<string> = new Set(['GET', 'HEAD', 'OPTIONS']);
const ENV_ID = new RegExp((Id as { pattern?: string }).pattern ?? '');

const admitted = new WeakMap<Caller, Identity>();
/**
 * Who a request's caller is by the very credential of that request: a token may say less than its holder may. What lasts longer than a
 * request asks anew.
 */
export const admittedAs = (caller: Caller): Identity | undefined => admitted.get(caller);

/** One request door, whatever the transport: identify → gate → validate → handle → validate the answer (house 8). */
export class Operation {
  readonly name: string;
  readonly route: AnyRoute;
  readonly #host: OperationHost;
  readonly #handler: (request: Request) => Promise<unknown>;
  readonly #params: Validator | undefined;
  readonly #query: Validator;
  readonly #body: Validator | undefined;
  readonly #returns: Validator | undefined;
  readonly #gates: readonly OpenGate[] | undefined;
  readonly #signedIn: boolean;
  readonly #authenticated: boolean;
  readonly #workloads: boolean;
  readonly #env: RouteEnv;
  /** The gates that a kind of caller may pass at all. */
  readonly #open = new Map<Identity['principal'], readonly OpenGate[]>();

  constructor(host: OperationHost, name: string, route: AnyRoute, handler: (request: Request) => Promise<unknown>) {
    this.name = name;
    this.route = route;
    this.#host = host;
    this.#handler = handler;
    const { params, query, body, returns, gate } = route.options;
    this.#params = params && new Validator(Type.Object(params));
    this.#query = new Validator(closed(Type.Object(query ?? {})));
    this.#body = body && new Validator(closed(body));
    this.#returns = returns && new Validator(returns);
    this.#workloads = typeof gate === 'object' && 'workload' in gate;
    this.#signedIn = typeof gate === 'object' && 'signedIn' in gate;
    this.#authenticated = typeof gate === 'object' && 'authenticated' in gate;
    this.#env = route.options.env ?? (gateActions(gate) ? host.env : 'any');
    this.#gates = gateActions(gate)?.map(action => ({
      key: actionKey(host.vertical, action),
      principals: host.actions[action]?.principals,
      bound: host.actions[action]?.bound ?? false,
    }));
  }

  /** Scopes that open it, canonical; none of a public door. */
  get gateKeys(): readonly string[] {
    return this.#gates?.map(({ key }) => key) ?? [];
  }

  /** Everything before the handler: identify, gate, validate. Stream, socket and raw doors read no body here. */
  async open(incoming: Incoming): Promise<Request> {
    const identity = this.#gates ? await incoming.identity() : undefined;
    const targetEnvId = this.#target(incoming, identity);
    if (this.#gates && identity) await this.admit(identity, targetEnvId, incoming.correlationId);
    if (identity && this.route.door === 'request') admitted.set(identity.caller, identity);
    const env = this.#environment(targetEnvId, identity);
    const scope = currentScope();
    if (scope) scope.envId = env ?? targetEnvId ?? identity?.caller.envId;
    if (env !== undefined && identity) {
      await this.#requireThere(env, identity);
      await this.#requireActive(env, identity, incoming);
    }
    this.#requireParams(incoming);
    this.#requireVersioned(incoming);
    const raw = this.route.door !== 'request' && this.route.options.query === undefined;
    const query = raw ? {} : this.#readQuery(incoming.query);
    const body = this.route.door === 'request' ? await this.#readBody(incoming) : undefined;
    return new OpenedRequest(incoming, { query, body, caller: identity?.caller, targetEnvId, env });
  }

  /** Runs the whole door. Problems are thrown for the transport to write. */
  run(incoming: Incoming): Promise<Outgoing> {
    return traced(
      `${this.#host.service}.${this.name}`,
      { 'platform.service': this.#host.service, 'platform.correlation_id': incoming.correlationId },
      () => this.#perform(incoming),
      incoming.headers['traceparent'],
    );
  }

  async #perform(incoming: Incoming): Promise<Outgoing> {
    const request = await this.open(incoming);
    return this.#once(this.route.method, request, () => this.#answer(request));
  }

  /** Does the work of a raw door once for the key of its request, where the route says that the kernel keeps its answers. */
  async once(method: string, request: Request, work: () => Promise<Response>): Promise<Response> {
    return onceAnswered(work, run => this.#once(method, request, run));
  }

  async #once(method: string, request: Request, work: () => Promise<Outgoing>): Promise<Outgoing> {
    const { answers } = this.#host;
    const { idempotency = 'kernel' } = this.route.options;
    const isKept = method === 'POST' && (idempotency === 'kernel' || idempotency === 'secret');
    const keyed = answers && isKept ? keyedRequest(this.name, request, idempotency === 'kernel') : undefined;
    if (!answers || !keyed) return work();
    const scope = currentScope();
    if (scope) scope.keyed = keyed.request;
    return answers.run(keyed, work);
  }

  async #answer(request: Request): Promise<Outgoing> {
    const { options } = this.route;
    const answer = await this.#handler(request);
    if (!SAFE.has(this.route.method) && isPassedOver(request.ifMatch))
      throw kernelProblem('answer_invalid', {
        cause: new Error(`${this.name} declares ifMatch and did not compare it: ctx.requireVersion is missing`),
      });
    const { value, status, headers } = isReply(answer) ? answer : { value: answer, status: undefined, headers: undefined };
    if (this.#returns && value !== undefined && !this.#returns.check(value)) {
      throw kernelProblem('answer_invalid', {
        cause: new Error(
          `${this.name} broke its promise: ${JSON.stringify(this.#returns.faults(value).map(({ pointer, message }) => `${pointer} ${message}`))}`,
        ),
      });
    }
    const outgoing = {
      status: status ?? options.status ?? (value === undefined ? 204 : 200),
      value,
      headers: { ...etagOf(value), ...headers },
    };
    this.#host.seen?.(this.name, outgoing.status, undefined);
    return outgoing;
  }

  /** The gate alone: principal kind, certificate binding, policy decision. */
  async admit(identity: Identity, targetEnvId: string | undefined, correlationId: string): Promise<void> {
    const gates = this.#gates;
    if (!gates || this.#authenticated) return;
    if (this.#signedIn) {
      if (identity.principal !== 'user') throw kernelProblem('user_required');
      return;
    }
    if (this.#workloads && identity.principal === 'machine') return;
    let open = this.#open.get(identity.principal);
    if (!open)
      this.#open.set(identity.principal, (open = gates.filter(gate => !gate.principals || gate.principals.includes(identity.principal))));
    if (open.length === 0) throw kernelProblem(gates.some(gate => gate.principals?.includes('machine')) ? 'm2m_required' : 'user_required');
    if (open.every(({ bound }) => bound === true || bound === identity.principal) && !identity.caller.bound)
      throw kernelProblem('certificate_binding_required');
    const chosen = open.find(gate => identity.scopes.has(gate.key)) ?? (open[0] as OpenGate);
    await this.#host.engine.require({ identity, action: chosen.key, envId: targetEnvId ?? identity.caller.envId, correlationId });
  }

  #target({ query, headers }: Incoming, identity: Identity | undefined): string | undefined {
    const header = headers['x-bff-target-env-id'] ?? headers['x-platform-target-env-id'];
    const said = (member: string) =>
      query instanceof URLSearchParams ? (query.get(member) ?? undefined) : (query[member] as string | undefined);
    // A document spells it `envId` on some listings (G-K-03); it is the same question, with the same checks.
    const named = [header, said('target_env_id'), 'envId' in (this.route.options.query ?? {}) ? said('envId') : undefined].filter(
      each => each !== undefined,
    );
    if (new Set(named).size > 1) throw kernelProblem('target_mismatch');
    const target = named[0];
    if (target === undefined) {
      if (this.#env === 'target')
        throw kernelProblem('target_env_required', { detail: 'Name the environment in the query member target_env_id.' });
      return undefined;
    }
    // No environment has such a name; asking a database for it would be an error of ours.
    if (!ENV_ID.test(target)) throw kernelProblem('target_denied', { detail: 'target_env_id is the id of an environment.' });
    if (identity && identity.caller.kind !== 'machine' && identity.caller.envId !== target && !identity.caller.platformAdmin) {
      throw kernelProblem('target_denied', { detail: 'The token is for another environment.' });
    }
    return target;
  }

  #environment(target: string | undefined, identity: Identity | undefined): string | undefined {
    if (this.#env === 'any') return undefined;
    const env = target ?? identity?.caller.envId;
    if (env === undefined)
      throw kernelProblem('target_env_required', { detail: 'Name the environment in the query member target_env_id.' });
    return env;
  }

  /** An administrator reaches every environment there is: one that is not there must not look like an empty one (F-25). */
  async #requireThere(env: string, { caller }: Identity): Promise<void> {
    if (this.#env !== 'target' || !caller.platformAdmin || env === SYSTEM.envId || env === caller.envId) return;
    if ((await this.#host.environments?.of(env)) === 'absent')
      throw kernelProblem('target_denied', { detail: 'There is no such environment.' });
  }

  /** The platform's own workloads go on: they are the ones that suspend, archive and clean up (G-SYS-02). */
  async #requireActive(env: string, { principal, caller }: Identity, incoming: Incoming): Promise<void> {
    if (
      env === SYSTEM.envId ||
      SAFE.has(incoming.method ?? this.route.method) ||
      (principal === 'machine' && caller.vertical === 'platform')
    )
      return;
    await this.#host.environments?.requireActive(env);
  }

  #requireParams({ params }: Incoming): void {
    if (this.#params && !this.#params.check(params))
      throw kernelProblem('validation_failed', {
        extra: { errors: this.#params.faults(params, '/params') },
        detail: 'The path does not fit; errors says where.',
      });
  }

  /** A condition that nobody compares would be passed over, and somebody's change lost (G-K-03). */
  #requireVersioned({ headers }: Incoming): void {
    const { door, method, options } = this.route;
    if (door !== 'request' || SAFE.has(method) || options.ifMatch || versionsOf(headers['if-match']) === undefined) return;
    throw kernelProblem('precondition_unsupported', { detail: 'Send this without If-Match; the record that has the ETag takes it.' });
  }

  #readQuery(source: Incoming['query']): unknown {
    const properties = this.route.options.query ?? {};
    const read = source instanceof URLSearchParams ? readQuery(source, properties) : { ...source };
    for (const member of TOLERATED) if (!(member in properties)) delete read[member];
    if ('cursor' in properties && read['cursor'] !== undefined) requireCursor(read['cursor']);
    if (!this.#query.check(read))
      throw kernelProblem('validation_failed', {
        extra: { errors: this.#query.faults(read, '/query') },
        detail: 'The query does not fit; errors says where.',
      });
    return read;
  }

  async #readBody(incoming: Incoming): Promise<unknown> {
    const { method, options } = this.route;
    if (method === 'GET' || method === 'DELETE') return undefined;
    const body = await incoming.body(options.limit ?? DEFAULT_LIMIT);
    if (!this.#body) {
      if (body === undefined || (typeof body === 'object' && body !== null && Object.keys(body).length === 0)) return undefined;
      throw kernelProblem('validation_failed', { detail: 'This request takes no body.' });
    }
    if (!this.#body.check(body))
      throw kernelProblem('validation_failed', {
        extra: { errors: this.#body.faults(body) },
        detail: 'The body does not fit; errors says where.',
      });
    return body;
  }
}

/** The actions of a gate: none where any signed-in person or any valid credential will do, `undefined` for a public one. */
export function gateActions(gate: Gate): readonly string[] | undefined {
  if (typeof gate === 'string') return [gate];
  if ('any' in gate) return gate.any;
  if ('workload' in gate) return gate.or;
  return 'signedIn' in gate || 'authenticated' in gate ? [] : undefined;
}

function etagOf(value: unknown): Record<string, string> {
  const version = typeof value === 'object' && value !== null ? (value as { version?: unknown }).version : undefined;
  return Number.isInteger(version) ? { etag: `"${version}"` } : {};
}
