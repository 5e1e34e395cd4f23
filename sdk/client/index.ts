import { type AnyContract, type AnyRoute, type Client, type ProblemBody, ProblemError } from '@platform/sdk';

export interface ClientOptions {
  /** Address of the service, such as `https://sys.ops.sys.example.org`. */
  readonly baseUrl: string;
  /** Called before every request; the bearer it returns is sent. */
  readonly token?: () => string | Promise<string>;
  readonly fetch?: typeof fetch;
  readonly headers?: Readonly<Record<string, string>>;
}

interface Input {
  readonly params?: Readonly<Record<string, string>>;
  readonly query?: Readonly<Record<string, unknown>>;
  readonly body?: unknown;
  readonly targetEnvId?: string;
  readonly idempotencyKey?: string;
  readonly signal?: AbortSignal;
}

/** Typed calls to a service from anywhere: one function per request route of its contract. A declared problem is thrown under its code. */
export function createClient<C extends AnyContract>(contract: C, options: ClientOptions): Client<C> {
  const routes = Object.entries(contract.routes as Record<string, AnyRoute>).filter(([, route]) => route.door === 'request');
  return Object.fromEntries(
    routes.map(([name, route]) => [name, (input: Input = {}) => send(contract, route, input, options)]),
  ) as unknown as Client<C>;
}

async function send(contract: AnyContract, route: AnyRoute, input: Input, options: ClientOptions): Promise<unknown> {
  const path = route.path.replace(/\{\*?([A-Za-z_]+)\}/g, (_, name: string) => encodeURIComponent(input.params?.[name] ?? ''));
  const search = new URLSearchParams(
    Object.entries(input.query ?? {}).flatMap(([name, value]) => (value === undefined ? [] : [[name, String(value)]])),
  );
  const response = await (options.fetch ?? fetch)(`${options.baseUrl}${path}${search.size > 0 ? `?${search}` : ''}`, {
    method: route.method,
    headers: {
      accept: 'application/json',
      ...options.headers,
      ...(options.token ? { authorization: `Bearer ${await options.token()}` } : {}),
      ...(input.targetEnvId ? { 'x-platform-target-env-id': input.targetEnvId } : {}),
      ...(input.idempotencyKey ? { 'idempotency-key': input.idempotencyKey } : {}),
      ...(input.body === undefined ? {} : { 'content-type': 'application/json' }),
    },
    ...(input.body === undefined ? {} : { body: JSON.stringify(input.body) }),
    ...(input.signal ? { signal: input.signal } : {}),
  });
  const text = await response.text();
  if (response.ok) return text === '' ? undefined : JSON.parse(text);
  const body = parse(text);
  const code = body.code ?? 'internal';
  const decl = contract.problems[code] ?? {
    status: response.status,
    title: body.title ?? response.statusText,
    retry: response.status >= 500 ? 'later' : 'never',
  };
  throw new ProblemError(
    contract.base.id,
    code,
    { ...decl, status: response.status },
    { ...(body.detail ? { detail: body.detail } : {}), extra: body.errors ? { errors: body.errors } : {} },
  );
}

function parse(text: string): Partial<ProblemBody> {
  try {
    return JSON.parse(text) as Partial<ProblemBody>;
  } catch {
    return {};
  }
}
