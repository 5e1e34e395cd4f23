import type { Logger } from '@platform/sdk';
import type { Clock } from '../../base/clock.ts';
import { EventConsumer } from '../../outbox/consumption/event-consumer.ts';
import type { ConsumerBus } from '../../outbox/consumption/consumer-bus.ts';

/** The family is open to any vertical; only the platform's own word changes policies. */
const TOLD = /^platform:[a-z0-9]+:policy:updated$/;

/** Hears on the bus of policies that changed, and has the services of this process read them anew (KRN-022). */
export function policyReload(parts: {
  readonly bus: ConsumerBus;
  readonly log: Logger;
  readonly service: string;
  readonly instance: string;
  readonly clock: Clock;
  readonly changed: (envId: string, service: string) => Promise<void>;
}): EventConsumer {
  const { changed, ...more } = parts;
  return new EventConsumer({
    ...more,
    name: 'policy',
    family: 'policy',
    event: '*',
    delivery: 'process',
    handle: async ({ env_id, event_type, payload }) => {
      if (TOLD.test(event_type)) await changed(env_id, (payload as { service?: string }).service ?? '*');
    },
  });
}
