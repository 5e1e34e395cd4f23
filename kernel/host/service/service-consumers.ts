import { EventConsumer } from '../../outbox/consumption/event-consumer.ts';
import type { StreamEntry } from '../../outbox/consumption/consumer-bus.ts';
import { once } from '../../outbox/consumption/inbox.ts';
import { OrderedConsumer } from '../../outbox/consumption/ordered-consumer.ts';
import { takeLead } from './consumer-lead.ts';
import type { Delivery } from '@platform/sdk';
import { newId } from '../../base/ids.ts';
import type { ServiceInstanceParts } from './service-instance-parts.ts';

type Parts = Pick<ServiceInstanceParts, 'manifest' | 'bus' | 'log' | 'instance' | 'pool' | 'clock'>;

/** One consumer for every subscription of the contract, running from now on. Throws when one has no handler. */
export function consumersOf(
  { manifest, bus, log, instance, pool, clock }: Parts,
  handlers: Readonly<Record<string, (delivery: object) => Promise<void>>>,
  missed?: (name: string) => void,
): (EventConsumer | OrderedConsumer)[] {
  return Object.entries(manifest.consumes).map(([name, { event, family, ordered, concurrency = 1, delivery = 'fleet', reconnect_s }]) => {
    const handler = handlers[name];
    if (!handler) throw new Error(`${manifest.id} consumes ${name} and gives it no handler`);
    const options = {
      bus,
      log,
      service: manifest.id,
      name,
      family,
      event,
      concurrency,
      delivery,
      instance,
      clock,
      handle: (entry: StreamEntry) => handler(deliveryOf(entry)),
      mark: (from: string, key: string) => once(pool.sql, from, key),
      ...(missed ? { missed: () => missed(name) } : {}),
      ...(reconnect_s === undefined ? {} : { reconnectMs: reconnect_s * 1_000 }),
    };
    if (ordered === undefined) return new EventConsumer(options);
    if (delivery === 'process')
      throw new Error(`${manifest.id} consumes ${name} in every process and in order: order needs one process of the fleet`);
    return new OrderedConsumer({ ...options, ordered, lead: () => takeLead(pool, name, instance) });
  });
}

/** A subscription that is made while the service runs: this process's own, and gone with it. */
export function runtimeConsumer(
  { manifest, bus, log, instance, clock }: Omit<Parts, 'pool'>,
  { family, event = '*', concurrency = 1, missed }: { family: string; event?: string; concurrency?: number; missed?: () => void },
  handler: (delivery: Delivery<Readonly<Record<string, unknown>>>) => Promise<void>,
): EventConsumer {
  if (manifest.vertical !== 'platform')
    throw new Error(`${manifest.id} is no service of the platform; it declares what it hears under consumes`);
  const name = `run-${newId()}`;
  return new EventConsumer({
    bus,
    log,
    service: manifest.id,
    name,
    family,
    event,
    concurrency,
    delivery: 'process',
    instance,
    clock,
    handle: entry => handler(deliveryOf(entry)),
    ...(missed ? { missed } : {}),
  });
}

const deliveryOf = (entry: StreamEntry): Delivery<Readonly<Record<string, unknown>>> => ({
  id: entry.idempotency_key,
  event: entry.event_type,
  envId: entry.env_id,
  payload: entry.payload as Readonly<Record<string, unknown>>,
  attempt: entry.delivery_count ?? 1,
  correlationId: entry.correlation_id,
});
