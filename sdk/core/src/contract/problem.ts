/** An expected failure. What is not declared reaches the client as `internal`, without detail (house 13). */
export interface ProblemDecl {
  readonly status: number;
  readonly title: string;
  /** `never`: the caller must change the request. `later`: the same request may succeed. */
  readonly retry: 'never' | 'later';
  readonly log?: 'debug' | 'info' | 'warn' | 'error';
  /** Code on the wire where it is not the declared name: one code that a document gives two statuses. */
  readonly code?: string;
  /** A fixed type URI where a standard names one; `urn:platform:problem:{service}:{code}` otherwise. */
  readonly type?: string;
}

/** One fault of a request, located by JSON pointer (G-K-01). */
export interface FieldFault {
  readonly pointer: string;
  readonly code: string;
  readonly message: string;
}

/** RFC 9457 body of every refusal (G-K-01). */
export interface ProblemBody {
  type: string;
  title: string;
  status: number;
  code: string;
  detail?: string;
  instance?: string;
  correlation_id?: string;
  reason?: string;
  retry_after?: number;
  errors?: readonly FieldFault[];
  [extension: string]: unknown;
}

const CHALLENGE = 'Bearer realm="platform", error="invalid_token"';
const brand = Symbol.for('platform.problem');

/** A declared problem on its way to a caller. Recognised by brand, so that two copies of the SDK agree. */
export class ProblemError extends Error {
  readonly [brand] = true;
  readonly code: string;
  readonly status: number;
  readonly retry: 'never' | 'later';
  readonly service: string;
  readonly title: string;
  readonly type: string;
  readonly detail: string | undefined;
  readonly extra: Readonly<Record<string, unknown>>;
  readonly headers: Readonly<Record<string, string>>;
  readonly level: 'debug' | 'info' | 'warn' | 'error';

  constructor(
    service: string,
    code: string,
    decl: ProblemDecl,
    more: { detail?: string; cause?: unknown; extra?: Record<string, unknown>; headers?: Record<string, string> } = {},
  ) {
    super(more.detail ?? decl.title, more.cause === undefined ? undefined : { cause: more.cause });
    this.name = 'ProblemError';
    this.code = decl.code ?? code;
    this.status = decl.status;
    this.retry = decl.retry;
    this.service = service;
    this.title = decl.title;
    this.type = decl.type ?? `urn:platform:problem:${service}:${this.code}`;
    this.detail = more.detail;
    this.extra = more.extra ?? {};
    // A caller that is refused for want of a credential is told how to bring one (RFC 9110 15.5.2, G-K-02).
    this.headers = { ...(decl.status === 401 ? { 'www-authenticate': CHALLENGE } : {}), ...more.headers };
    this.level = decl.log ?? (decl.status >= 500 ? 'error' : 'info');
  }
}

/** Whether a thrown value is a declared problem. */
export function isProblem(error: unknown): error is ProblemError {
  return typeof error === 'object' && error !== null && brand in error;
}

/** The wire form of a problem. */
export function problemBody(error: ProblemError, correlationId?: string, requestId?: string): ProblemBody {
  const retryAfter = error.headers['retry-after'];
  return {
    type: error.type,
    title: error.title,
    status: error.status,
    code: error.code,
    ...(error.detail === undefined ? {} : { detail: error.detail }),
    ...(requestId === undefined ? {} : { instance: `urn:uuid:${requestId}` }),
    ...(correlationId === undefined ? {} : { correlation_id: correlationId }),
    ...(retryAfter === undefined ? {} : { retry_after: Number(retryAfter) }),
    ...error.extra,
  };
}
