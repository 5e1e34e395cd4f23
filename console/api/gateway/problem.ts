export interface FieldError {
  readonly pointer: string;
  readonly code: string;
  readonly message: string;
}

interface ProblemInit {
  status: number;
  code: string;
  title: string;
  detail?: string | undefined;
  correlationId: string;
  errors?: readonly FieldError[] | undefined;
  retryAfter?: number | undefined;
}

/** What the gateway or a service answered instead of what was asked for; status 0 means that no answer came. */
export class Problem extends Error {
  override readonly name = 'Problem';
  readonly status: number;
  readonly code: string;
  readonly title: string;
  readonly detail: string | undefined;
  readonly correlationId: string;
  readonly errors: readonly FieldError[];
  readonly retryAfter: number | undefined;

  constructor(init: ProblemInit) {
    super(init.detail ?? init.title);
    this.status = init.status;
    this.code = init.code;
    this.title = init.title;
    this.detail = init.detail;
    this.correlationId = init.correlationId;
    this.errors = init.errors ?? [];
    this.retryAfter = init.retryAfter;
  }

  get denied(): boolean {
    return this.status === 403;
  }

  get absent(): boolean {
    return this.status === 404;
  }

  /** The route is documented but this build does not serve it yet. */
  get unavailable(): boolean {
    return this.status === 404 || this.status === 501;
  }

  /** No refusal but trouble: no answer came, the service has too much to do, or it failed. The same question may be answered later. */
  get passing(): boolean {
    return this.status === 0 || this.status === 429 || (this.status >= 500 && this.status !== 501);
  }

  static async from(response: Response, correlationId: string): Promise<Problem> {
    const body: Record<string, unknown> = await response.json().catch(() => ({}));
    const text = (name: string) => (typeof body[name] === 'string' ? (body[name] as string) : undefined);
    return new Problem({
      status: response.status,
      code: text('code') ?? text('error') ?? `http_${response.status}`,
      title: text('title') ?? (response.statusText || `The answer was ${response.status}`),
      detail: text('detail') ?? text('error_description'),
      correlationId: text('correlation_id') ?? correlationId,
      errors: Array.isArray(body['errors']) ? (body['errors'] as FieldError[]) : undefined,
      retryAfter: typeof body['retry_after'] === 'number' ? body['retry_after'] : undefined,
    });
  }

  static unreachable(correlationId: string): Problem {
    return new Problem({
      status: 0,
      code: 'unreachable',
      title: 'The gateway could not be reached',
      detail: 'No answer came back. Check the network and try again.',
      correlationId,
    });
  }

  static of(error: unknown, correlationId = ''): Problem {
    if (error instanceof Problem) return error;
    const detail = error instanceof Error ? error.message : String(error);
    return new Problem({ status: 0, code: 'console_fault', title: 'The console failed', detail, correlationId });
  }
}
