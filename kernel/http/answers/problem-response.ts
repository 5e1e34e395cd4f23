import { errorBody, type ErrorForm, isProblem, type Logger, ProblemError, isUnavailable } from '@platform/sdk';
import { newId } from '../../base/ids.ts';
import { KERNEL_PROBLEMS, kernelProblem } from '../../base/kernel-problem.ts';

export interface ProblemResponse {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
  readonly code: string;
}

/** Any thrown value as a declared problem: ours as it is, a lost store as 503, everything else as `internal` without detail. */
export function asProblem(error: unknown): ProblemError {
  if (isProblem(error)) return error;
  if (isUnavailable(error)) return kernelProblem('not_ready', { detail: 'A store this service needs is away. Try again.', cause: error });
  return kernelProblem('internal', { cause: error });
}

/** A problem of another service that nobody here expected is our own failure; only «not ready yet» passes on. */
function foreign(problem: ProblemError, service: string): ProblemError {
  if (problem.service === 'kernel' || problem.service === service) return problem;
  return kernelProblem(problem.status === 503 ? 'not_ready' : 'internal', { cause: problem });
}

/**
 * The wire form of a failure, logged once with its cause, which the client never sees (house 13). `form`: of the route that was asked for.
 */
export function problemResponse(
  error: unknown,
  context: { service: string; correlationId: string; log: Logger; form?: ErrorForm | undefined },
): ProblemResponse {
  const problem = named(foreign(asProblem(error), context.service), context.service);
  if (problem.level === 'error' || problem.cause !== undefined) {
    context.log[problem.level]({ code: problem.code, status: problem.status, err: problem.cause ?? problem }, 'request failed');
  }
  const { type, body } = errorBody(problem, { form: context.form, correlationId: context.correlationId, requestId: newId() });
  return {
    status: problem.status,
    code: problem.code,
    headers: {
      ...problem.headers,
      'content-type': type,
      'x-platform-correlation-id': context.correlationId,
      'cache-control': 'no-store',
      'x-content-type-options': 'nosniff',
    },
    body: JSON.stringify(body),
  };
}

/** A kernel refusal carries the name of the service that refused. */
export function named(problem: ProblemError, service: string): ProblemError {
  if (problem.service !== 'kernel') return problem;
  return new ProblemError(service, problem.code, KERNEL_PROBLEMS[problem.code as keyof typeof KERNEL_PROBLEMS], {
    ...(problem.detail === undefined ? {} : { detail: problem.detail }),
    cause: problem.cause,
    extra: problem.extra,
    headers: problem.headers,
  });
}
