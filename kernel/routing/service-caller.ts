import { setTimeout as delay } from 'node:timers/promises';
import { type AnyRoute, isProblem, type ProblemBody, type ProblemDecl, ProblemError } from '@platform/sdk';
import { backoff } from '../base/backoff.ts';
import { Deadline } from '../base/deadline.ts';
import { newId } from '../base/ids.ts';
import { kernelProblem } from '../base/kernel-problem.ts';
import type { Workload } from '../identity/workload.ts';
import { currentScope } from '../telemetry/request-scope.ts';
import { traceHeaders } from '../telemetry/trace.ts';
import type { BackendPools } from './backend-pools.ts';

const TIMEOUT_MS = 10_000;
const RETRIES = 2;
const MAX_ANSWER_BYTES = 16 * 1_048_576;
const SAFE = new Set(['GET', 'PUT', 'DELETE']);

/** Input of a typed call, as the SDK's `CallInput` at run time. */
export interface CallInput {
  readonly params?: Readonly<Record<string, string>>;
  readonly query?: Readonly<Record<string, unknown>>;
  readonly body?: unknown;
  readonly targetEnvId?: string;
  readonly idempotencyKey?: string;
  readonly signal?: AbortSignal;
  /** The other side may hold the answer back; ten more seconds. */
  readonly longPoll?: boolean;
}

/** Input of a call that stays in this process. */
export interface LocalInput {
  readonly params: Record<string, string>;
  readonly query: Record<string, unknown>;
  readonly body: unknown;
  readonly headers: Record<string, string>;
  readonly signal: AbortSignal;
}

/** A service in this process. What goes in and out has been through JSON, exactly as if it had travelled. */
export interface LocalService {
  call(operation: string, input: LocalInput, caller: Workload): Promise<unknown>;
}

/** Where a service is: this process, the instance registry, or unknown. The one function a process mode changes (house 12). */
export class ServiceCaller {
  readonly #pools: BackendPools;
  readonly #locals = new Map<string, LocalService>();

  constructor(pools: BackendPools) {
    this.#pools = pools;
  }

  addLocal(service: string, local: LocalService): Disposable {
    this.#locals.set(service, local);
    return { [Symbol.dispose]: () => this.#locals.delete(service) };
  }

  /** A typed client's engine: one function per request route of the other contract. */
  client(
    workload: Workload,
    service: string,
    routes: Readonly<Record<string, AnyRoute>>,
    problems: Readonly<Record<string, ProblemDecl>>,
  ): Record<string, (input?: CallInput) => Promise<unknown>> {
    const callable = Object.entries(routes).filter(([, route]) => route.door === 'request');
    return Object.fromEntries(
      callable.map(([name, route]) => [name, (input: CallInput = {}) => this.call(workload, { service, name, route, problems }, input)]),
    );
  }

  async call(
    workload: Workload,
    target: { service: string; name: string; route: Pick<AnyRoute, 'method' | 'path'>; problems: Readonly<Record<string, ProblemDecl>> },
    input: CallInput,
  ): Promise<unknown> {
    const safe = SAFE.has(target.route.method) || input.idempotencyKey !== undefined;
    for (let attempt = 0; ; attempt++) {
      try {
        return await this.#once(workload, target, input);
      } catch (error) {
        // 503 says that nothing has happened yet; anything else may have, and only a harmless verb goes twice (G-K-22).
        const again = isProblem(error) && (error.status === 503 || (safe && error.status === 502));
        if (!again || attempt >= RETRIES || input.signal?.aborted) throw error;
        await delay(backoff(attempt, { baseMs: 100, capMs: 1_000, jitter: true }));
      }
    }
  }

  async #once(
    workload: Workload,
    {
      service,
      name,
      route,
      problems,
    }: { service: string; name: string; route: Pick<AnyRoute, 'method' | 'path'>; problems: Readonly<Record<string, ProblemDecl>> },
    input: CallInput,
  ): Promise<unknown> {
    const headers: Record<string, string> = {
      'x-platform-correlation-id': currentScope()?.correlationId ?? `${workload.name}-${newId()}`,
      ...traceHeaders(),
      ...(input.targetEnvId ? { 'x-platform-target-env-id': input.targetEnvId } : {}),
      ...(input.idempotencyKey ? { 'idempotency-key': input.idempotencyKey } : {}),
    };
    const timeoutMs = input.longPoll ? 2 * TIMEOUT_MS : TIMEOUT_MS;
    using deadline = new Deadline(timeoutMs, input.signal);
    const { signal } = deadline;
    const local = this.#locals.get(service);
    if (local) {
      const answer = await local.call(
        name,
        { params: { ...input.params }, query: { ...input.query }, body: jsonCopy(input.body), headers, signal },
        workload,
      );
      return jsonCopy(answer);
    }
    const response = await this.#pools.request(workload, service, {
      method: route.method,
      path: pathOf(route.path, input),
      headers: { ...headers, accept: 'application/json', ...(input.body === undefined ? {} : { 'content-type': 'application/json' }) },
      ...(input.body === undefined ? {} : { body: JSON.stringify(input.body) }),
      signal,
      timeoutMs,
      long: input.longPoll === true,
    });
    const text = await readBounded(response.body, service);
    if (response.statusCode >= 200 && response.statusCode < 300) return text === '' ? undefined : JSON.parse(text);
    throw revive(service, response.statusCode, text, problems, response.headers['retry-after']);
  }
}

/** A problem of another service, thrown again here under its own name. */
function revive(
  service: string,
  status: number,
  text: string,
  problems: Readonly<Record<string, ProblemDecl>>,
  retryAfter: unknown,
): ProblemError {
  let body: Partial<ProblemBody> = {};
  try {
    body = JSON.parse(text) as Partial<ProblemBody>;
  } catch {
    // Not one of our problems: its status is all there is to say.
  }
  const code = typeof body.code === 'string' ? body.code : 'internal';
  const decl = problems[code] ?? {
    status,
    title: body.title ?? 'The call failed',
    retry: status >= 500 || status === 429 ? 'later' : 'never',
  };
  return new ProblemError(
    service,
    code,
    { ...decl, status },
    {
      ...(body.detail ? { detail: body.detail } : {}),
      ...(typeof retryAfter === 'string' ? { headers: { 'retry-after': retryAfter } } : {}),
      extra: body.errors ? { errors: body.errors } : {},
    },
  );
}

async function readBounded(body: AsyncIterable<Buffer>, service: string): Promise<string> {
  const chunks: Buffer[] = [];
  let size = 0;
  for await (const chunk of body) {
    size += chunk.length;
    if (size > MAX_ANSWER_BYTES)
      throw kernelProblem('backend_unreachable', { detail: `${service} answered with more than ${MAX_ANSWER_BYTES} bytes.` });
    chunks.push(chunk);
  }
  return Buffer.concat(chunks).toString('utf8');
}

function pathOf(template: string, { params, query }: CallInput): string {
  const path = template.replace(/\{\*?([A-Za-z_]+)\}/g, (_, name: string) => encodeURIComponent(params?.[name] ?? ''));
  const search = new URLSearchParams(
    Object.entries(query ?? {}).flatMap(([name, value]) => (value === undefined || value === null ? [] : [[name, String(value)]])),
  );
  return search.size > 0 ? `${path}?${search}` : path;
}

/** What a wire would have made of a value. */
const jsonCopy = (value: unknown): unknown => (value === undefined ? undefined : JSON.parse(JSON.stringify(value)));
