import { type ProblemDecl, ProblemError } from '@platform/sdk';

/** Refusals every service can give, with one meaning everywhere (G-K-01, G-K-02). */
export const KERNEL_PROBLEMS = {
  malformed: { status: 400, title: 'The request is malformed', retry: 'never' },
  validation_failed: { status: 400, title: 'The request does not fit its schema', retry: 'never' },
  invalid_cursor: { status: 400, title: 'The cursor is not one of ours', retry: 'never' },
  target_env_required: { status: 400, title: 'target_env_id is missing', retry: 'never' },
  target_mismatch: { status: 400, title: 'Header and query name different targets', retry: 'never' },
  unauthenticated: { status: 401, title: 'No valid credential', retry: 'never' },
  actor_revoked: { status: 401, title: 'The session or identity was revoked', retry: 'never' },
  policy_denied: { status: 403, title: 'Not permitted', retry: 'never' },
  tenant_unresolved: { status: 403, title: 'The token names no environment', retry: 'never' },
  tenant_mismatch: { status: 403, title: 'The token belongs to another environment', retry: 'never' },
  certificate_binding_required: { status: 403, title: 'A certificate-bound identity is required', retry: 'never' },
  m2m_required: { status: 403, title: 'Only a workload may call this', retry: 'never' },
  user_required: { status: 403, title: 'Only a person may call this', retry: 'never' },
  target_denied: { status: 403, title: 'This environment is not open to the caller', retry: 'never' },
  service_disabled: { status: 403, title: 'The service is disabled for this environment', retry: 'never' },
  action_not_found: { status: 404, title: 'No such action', retry: 'never' },
  not_found: { status: 404, title: 'Nothing is here', retry: 'never' },
  method_not_allowed: { status: 405, title: 'The path does not know this method', retry: 'never' },
  not_acceptable: { status: 406, title: 'No acceptable representation', retry: 'never' },
  env_suspended: { status: 409, title: 'The environment is suspended', retry: 'never' },
  env_archived: { status: 409, title: 'The environment is archived', retry: 'never' },
  idempotency_key_reused: { status: 409, title: 'The Idempotency-Key stands for another request', retry: 'never' },
  idempotency_in_progress: { status: 409, title: 'The first request under this Idempotency-Key has not ended', retry: 'later' },
  idempotency_answer_gone: { status: 409, title: 'The first request took effect; its answer is gone', retry: 'never' },
  platform_origin_row: { status: 409, title: 'The platform manages this row', retry: 'never' },
  precondition_failed: { status: 412, title: 'The resource has changed', retry: 'never' },
  precondition_unsupported: { status: 412, title: 'This has no version that If-Match could name', retry: 'never' },
  body_timeout: { status: 408, title: 'The body did not come in time', retry: 'later' },
  body_too_large: { status: 413, title: 'The body is too large', retry: 'never' },
  misdirected: { status: 421, title: 'This listener does not serve that host', retry: 'never' },
  unsupported_media_type: { status: 415, title: 'The body must be JSON', retry: 'never' },
  policy_invalid: { status: 422, title: 'The policy does not hold', retry: 'never' },
  headers_too_large: { status: 431, title: 'The request header is too large', retry: 'never' },
  too_many_streams: { status: 429, title: 'Too many streams are open', retry: 'later', log: 'warn' },
  rate_limited: { status: 429, title: 'Too many requests', retry: 'later' },
  internal: { status: 500, title: 'Something went wrong on our side', retry: 'later', log: 'error' },
  answer_invalid: { status: 500, title: 'Something went wrong on our side', retry: 'later', log: 'error' },
  backend_unresolved: { status: 502, title: 'The service is not running', retry: 'later', log: 'warn' },
  backend_unreachable: { status: 502, title: 'The backend did not answer', retry: 'later', log: 'warn' },
  no_backend: { status: 503, title: 'No connection to the backend is free', retry: 'later', log: 'warn' },
  not_ready: { status: 503, title: 'The service is not ready', retry: 'later', log: 'warn' },
  draining: { status: 503, title: 'The service is stopping', retry: 'later', log: 'debug' },
  backend_timeout: { status: 504, title: 'The backend took too long', retry: 'later', log: 'warn' },
} as const satisfies Record<string, ProblemDecl>;

export type KernelProblemCode = keyof typeof KERNEL_PROBLEMS;

/** A kernel problem; the service that answers puts its own name into `type`. */
export function kernelProblem(
  code: KernelProblemCode,
  more: { detail?: string; cause?: unknown; extra?: Record<string, unknown>; headers?: Record<string, string> } = {},
): ProblemError {
  const decl = KERNEL_PROBLEMS[code];
  const headers = decl.status === 503 ? { 'retry-after': '2' } : {};
  return new ProblemError('kernel', code, decl, { ...more, headers: { ...headers, ...more.headers } });
}
