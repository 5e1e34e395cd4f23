import type { Logger } from '@platform/sdk';
import type { Adapter, Device } from './adapter.ts';

/** A channel without a provider of its own: it says what it would have sent, and has done it (NTF-022). */
export const stub = (channel: string, log: Logger): Adapter => ({
  name: `stub-${channel}`,
  async dispatch({ deliveryId, devices }) {
    log.info(
      { channel, delivery_id: deliveryId, ...(devices ? { devices: byPlatform(devices) } : {}) },
      'a message left by a channel that has no provider',
    );
  },
});

/** How many devices of each platform, in words. */
export const byPlatform = (devices: readonly Device[]): string =>
  [...Map.groupBy(devices, ({ platform }) => platform)]
    .map(([platform, of]) => `${platform} ${of.length}`)
    .sort()
    .join(', ');
