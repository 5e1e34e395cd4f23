import { isHopByHop } from '@platform/sdk';
import { errors } from 'undici';
import { kernelProblem } from '../base/kernel-problem.ts';

/** How long a backend may take to the head of its answer. */
export const RESPONSE_MS = 60_000;
const TARGET = /^\/[\x21-\xff]*$/;
const METHOD = /^[!#$%&'*+.^_`|~A-Za-z0-9-]+$/;
/** Each is settled on the hop where it was said: we have answered «100 Continue» ourselves before a body is sent on. */
const SETTLED = new Set(['expect', 'host']);

/** The headers of a request to a backend: nothing that belongs to another connection. */
export function backendHeaders(given: Readonly<Record<string, string>>, own: Readonly<Record<string, string>>): Record<string, string> {
  const kept = Object.entries(given).filter(
    ([name]) => !SETTLED.has(name.toLowerCase()) && !isHopByHop(name.toLowerCase(), given['connection']),
  );
  return { ...Object.fromEntries(kept), ...own };
}

/** Refuses what no client library writes, before a connection is taken for it (F-16). */
export function refuseUnsendable({ method, path }: { readonly method: string; readonly path: string }): void {
  if (!METHOD.test(method) || method === 'CONNECT')
    throw kernelProblem('method_not_allowed', {
      detail: 'This method is not forwarded.',
      headers: { allow: 'GET, HEAD, POST, PUT, PATCH, DELETE, OPTIONS' },
    });
  if (!TARGET.test(path)) throw kernelProblem('malformed', { detail: 'The request target is a path that starts with a slash.' });
}

/** Whether the client library refused a request before it sent anything: the request is at fault, not the backend. */
export const isUnsendable = (error: unknown): boolean =>
  error instanceof errors.InvalidArgumentError ||
  error instanceof errors.NotSupportedError ||
  error instanceof errors.RequestContentLengthMismatchError;

/** The problem of a request that no answer came to. */
export function unanswered(service: string, cause: unknown): Error {
  return (cause as { code?: string }).code === 'UND_ERR_HEADERS_TIMEOUT'
    ? kernelProblem('backend_timeout', { detail: `${service} did not answer in time.`, cause })
    : kernelProblem('backend_unreachable', { detail: `${service} could not be reached.`, cause });
}
