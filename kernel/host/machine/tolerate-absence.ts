import { type Logger, isUnavailable } from '@platform/sdk';

/**
 * What a driver leaves unheard when its store is away is a line in the log: `postgres` 3.4.9 asks for types on its own account when it
 * connects, and nobody hears the refusal. Any other rejection that nobody hears ends the process, as it would without this. One per
 * process.
 */
export function tolerateAbsence(log: Pick<Logger, 'warn'>): Disposable {
  const hear = (reason: unknown): void => {
    if (!isUnavailable(reason)) throw reason;
    log.warn({ err: reason }, 'a store is away');
  };
  process.on('unhandledRejection', hear);
  return { [Symbol.dispose]: () => void process.off('unhandledRejection', hear) };
}
