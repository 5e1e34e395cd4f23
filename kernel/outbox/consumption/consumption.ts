import { AsyncLocalStorage } from 'node:async_hooks';

/** The delivery that is being handled: its mark commits with the first transaction the handler opens (house 14). */
export interface Consumption {
  readonly consumer: string;
  readonly key: string;
  marked: boolean;
}

const storage = new AsyncLocalStorage<Consumption>();

export const consuming = <T>(consumption: Consumption, work: () => Promise<T>): Promise<T> => storage.run(consumption, work);
/** A call into another service is no part of the delivery: its transactions must not take the mark. */
export const outsideConsumption = <T>(work: () => Promise<T>): Promise<T> => storage.exit(work);
export const currentConsumption = (): Consumption | undefined => storage.getStore();

/** Thrown inside a transaction whose delivery was handled before; the consumer acknowledges and goes on. */
export class AlreadyHandled extends Error {}
