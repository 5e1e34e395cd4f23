import { KERNEL_PROBLEMS, type KernelProblemCode, ProblemError } from '@platform/sdk';

export { KERNEL_PROBLEMS, type KernelProblemCode };

/** A kernel problem; the service that answers puts its own name into `type`. */
export function kernelProblem(
  code: KernelProblemCode,
  more: { detail?: string; cause?: unknown; extra?: Record<string, unknown>; headers?: Record<string, string> } = {},
): ProblemError {
  const decl = KERNEL_PROBLEMS[code];
  const headers = decl.status === 503 ? { 'retry-after': '2' } : {};
  return new ProblemError('kernel', code, decl, { ...more, headers: { ...headers, ...more.headers } });
}
