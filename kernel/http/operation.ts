import {
  type AnyRoute,
  type Caller,
  gateActions,
  Id,
  isReply,
  type Limit,
  type LimitOptions,
  type ProblemDecl,
  type Request,
  type RouteEnv,
  SYSTEM,
} from '@platform/sdk';
import { kernelProblem } from '../base/kernel-problem.ts';
import { actionKey } from '../identity/tokens/scope-name.ts';
import type { Identity } from '../identity/tokens/verifier.ts';
import type { PolicyEngine } from '../policy/policy-engine.ts';
import { traced } from '../telemetry/trace.ts';
import type { EnvironmentStates } from '../identity/environment-states.ts';
import { currentScope } from '../telemetry/request-scope.ts';
import { OpenedRequest } from './doors/opened-request.ts';
import { onceAnswered } from './answers/raw-answer.ts';
import { keyedRequest, type ReplayedAnswers } from './answers/replayed-answers.ts';
import type { BodyBounds } from './doors/request-body.ts';
import { isPassedOver } from './precondition.ts';
import { RequestReading } from './schema/request-reading.ts';
import { RouteLimit } from './doors/route-limit.ts';
import { Validator } from './schema/schema.ts';
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
  /** What the service itself refuses with. */
  readonly problems?: Readonly<Record<string, ProblemDecl>>;
  /** Absent where nothing is counted. */
  readonly limit?: (options: LimitOptions) => Limit;
  /** Told about every answer, for metrics and contract coverage. */
  readonly seen?: (operation: string, status: number, problem: string | undefined) => void;
}

/** A request as any transport delivers it. The body is read only after the gate. */
interface OpenGate {
  readonly key: string;
  readonly principals: readonly string[] | undefined;
  readonly bound: boolean | 'machine';
}

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
  readonly #reading: RequestReading;
  readonly #rate: RouteLimit | undefined;
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
    const { returns, gate, rate } = route.options;
    this.#reading = new RequestReading(host.service, host.problems ?? {}, route);
    this.#rate = rate && host.limit && new RouteLimit(name, rate, host.limit);
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

  /** How much of a body its door takes. */
  get bounds(): BodyBounds {
    return this.#reading.bounds;
  }

  /** Scopes that open it, canonical; none of a public door. */
  get gateKeys(): readonly string[] {
    return this.#gates?.map(({ key }) => key) ?? [];
  }

  /** Everything before the handler: identify, gate, count, validate. A raw door reads no body here, and a socket has none. */
  async open(incoming: Incoming): Promise<Request> {
    const identity = this.#gates ? await incoming.identity() : undefined;
    const targetEnvId = this.#target(incoming, identity);
    if (this.#gates && identity) await this.admit(identity, targetEnvId, incoming.correlationId);
    if (identity && (this.route.door === 'request' || this.route.door === 'upload')) admitted.set(identity.caller, identity);
    const env = this.#environment(targetEnvId, identity);
    const scope = currentScope();
    if (scope) scope.envId = env ?? targetEnvId ?? identity?.caller.envId;
    if (env !== undefined && identity) {
      await this.#requireThere(env, identity);
      await this.#requireActive(env, identity, incoming);
    }
    await this.#rate?.require(incoming, identity?.caller);
    const { query, body } = await this.#reading.read(incoming);
    return new OpenedRequest(incoming, { query, body, caller: identity?.caller, targetEnvId, env });
  }

  /** The way through every door: what comes before the handler, then `last`, the door's own step, all in one span. */
  enter<T>(incoming: Incoming, last: (request: Request) => T | Promise<T>): Promise<T> {
    return traced(
      `${this.#host.service}.${this.name}`,
      { 'platform.service': this.#host.service, 'platform.correlation_id': incoming.correlationId },
      async () => last(await this.open(incoming)),
      incoming.headers['traceparent'],
    );
  }

  /** Runs the whole door of a request. Problems are thrown for the transport to write. */
  run(incoming: Incoming): Promise<Outgoing> {
    return this.enter(incoming, request => this.#once(this.route.method, request, () => this.#answer(request)));
  }

  /** Does the work of a raw door once for the key of its request, where the route says that the kernel keeps its answers. */
  async once(method: string, request: Request, work: () => Promise<Response>): Promise<Response> {
    return onceAnswered(work, run => this.#once(method, request, run));
  }

  async #once(method: string, request: Request, work: () => Promise<Outgoing>): Promise<Outgoing> {
    const { answers } = this.#host;
    const { idempotency = 'kernel' } = this.route.options;
    const isKept = method === 'POST' && (idempotency === 'kernel' || idempotency === 'secret');
    // A body with a password comes to a raw door, or from a sender whom the gate does not know yet.
    const hidden = request.caller === undefined || this.route.door === 'raw';
    const keyed = answers && isKept ? keyedRequest(this.name, request, { kept: idempotency === 'kernel', hidden }) : undefined;
    if (!answers || !keyed) return work();
    const scope = currentScope();
    if (scope) scope.keyed = keyed.request;
    return answers.run(keyed, work);
  }

  async #answer(request: Request): Promise<Outgoing> {
    const { options } = this.route;
    const answer = await this.#handler(request);
    if (this.route.door === 'request' && !SAFE.has(this.route.method) && isPassedOver(request.ifMatch))
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
}

function etagOf(value: unknown): Record<string, string> {
  const version = typeof value === 'object' && value !== null ? (value as { version?: unknown }).version : undefined;
  return Number.isInteger(version) ? { etag: `"${version}"` } : {};
}
