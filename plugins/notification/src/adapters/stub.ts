import type { Logger } from '@platform/sdk';
import type { Adapter } from './adapter.ts';

/** A channel without a provider of its own: it says what it would have sent, and has done it (NTF-022). */
export const stub = (channel: string, log: Logger): Adapter => ({
  name: `stub-${channel}`,
  async dispatch({ deliveryId }) {
    log.info({ channel, delivery_id: deliveryId }, 'a message left by a channel that has no provider');
  },
});
