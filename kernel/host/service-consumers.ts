import { EventConsumer } from '../outbox/event-consumer.ts';
import { once } from '../outbox/inbox.ts';
import type { ServiceInstanceParts } from './service-instance.ts';

type Parts = Pick<ServiceInstanceParts, 'manifest' | 'bus' | 'log' | 'instance' | 'pool' | 'clock'>;

/** One consumer for every subscription of the contract, running from now on. Throws when one has no handler. */
export function consumersOf({ manifest, bus, log, instance, pool, clock }: Parts, handlers: Readonly<Record<string, (delivery: object) => Promise<void>>>): EventConsumer[] {
  return Object.entries(manifest.consumes).map(([name, { event, family, delivery = 'fleet' }]) => {
    const handler = handlers[name];
    if (!handler) throw new Error(`${manifest.id} consumes ${name} and gives it no handler`);
    return new EventConsumer({
      bus,
      log,
      service: manifest.id,
      name,
      family,
      event,
      delivery,
      instance,
      clock,
      handle: entry =>
        handler({ id: entry.idempotency_key, event: entry.event_type, envId: entry.env_id, payload: entry.payload, attempt: entry.delivery_count ?? 1, correlationId: entry.correlation_id }),
      mark: (from, key) => once(pool.sql, from, key),
    });
  });
}
