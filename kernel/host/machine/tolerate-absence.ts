import { type Logger, isUnavailable } from '@platform/sdk';

/**
 * Logs a rejection that no code handles when it says that a store is away. `postgres` 3.4.9 needs this: it asks for types when it connects,
 * and handles no refusal of that question. Any other unhandled rejection ends the process, as it would without this. One per process.
 */
export function tolerateAbsence(log: Pick<Logger, 'warn'>): Disposable {
  const hear = (reason: unknown): void => {
    if (!isUnavailable(reason)) throw reason;
    log.warn({ err: reason }, 'a store is away');
  };
  process.on('unhandledRejection', hear);
  return { [Symbol.dispose]: () => void process.off('unhandledRejection', hear) };
}
