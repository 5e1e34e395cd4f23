import { isProblem } from '@platform/sdk';

/** Why a task or a job failed, in a few words without what a message may quote: that stands in the log alone. */
export function failureReason(error: unknown): string {
  if (isProblem(error)) return `${error.status} ${error.service}/${error.code}`;
  return error instanceof Error ? ((error as { code?: string }).code ?? error.name) : 'unknown';
}
