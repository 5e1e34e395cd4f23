import { isProblem } from '@platform/sdk';
import { inScope } from '../../telemetry/request-scope.ts';
import { AlreadyHandled, consuming } from './consumption.ts';
import type { ConsumerOptions } from './consumer-options.ts';
import type { StreamEntry } from './consumer-bus.ts';

/** How a handler ended: done (now or before), or failed, with whether another try can help. */
export type Handled =
  | { readonly ok: true }
  | { readonly ok: false; readonly never: boolean; readonly reason: string; readonly error: unknown };

/** A replayed dead letter is the same event once more (C3, C18). */
const originalType = ({ event_type, replayed_from_dlq }: StreamEntry) =>
  replayed_from_dlq ? event_type.replace(/\.replayed$/, '') : event_type;

/** What a consumer asks the bus for: its own event, and a replayed dead letter of it. */
export const typesOf = (event: string): { types?: readonly string[] } => (event === '*' ? {} : { types: [event] });

/** Whether the subscription wants the event. The bus has filtered by type; an older one has not, and the rest is acknowledged unread. */
export const wants = ({ event }: Pick<ConsumerOptions, 'event'>, entry: StreamEntry): boolean =>
  event === '*' || originalType(entry) === event;

/** Runs a handler for one entry. Its mark commits with its first transaction, or by itself when it opened none (house 14). */
export async function handleOnce({ service, name, handle, mark, delivery }: ConsumerOptions, entry: StreamEntry): Promise<Handled> {
  const consumption = { consumer: name, key: entry.idempotency_key, marked: false };
  const run = () => inScope({ correlationId: entry.correlation_id, service, envId: entry.env_id }, () => handle(entry));
  try {
    if (delivery === 'process') await run();
    else {
      await consuming(consumption, run);
      // A handler without a transaction has no effect to commit with; its mark alone still stops a second delivery.
      if (!consumption.marked) await mark?.(consumption.consumer, consumption.key);
    }
    return { ok: true };
  } catch (error) {
    if (error instanceof AlreadyHandled) return { ok: true };
    const reason = isProblem(error) ? `${error.code}: ${error.message}` : error instanceof Error ? error.message : String(error);
    return { ok: false, never: isProblem(error) && error.retry === 'never', reason: reason.slice(0, 500), error };
  }
}
