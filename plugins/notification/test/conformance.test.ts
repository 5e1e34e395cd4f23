import { expect } from 'vitest';
import { mkdtempSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { as, describeConformance } from '@platform/testing';
import notification from '../src/plugin.ts';
import { keyIn, registryOf, gatewayOf } from './fixtures/world.ts';

describeConformance(
  notification,
  {
    stubs: { registry: registryOf(), gateway: gatewayOf() },
    environment: keyIn(mkdtempSync(join(tmpdir(), 'platform-post-'))),
  },
  {
    rows: async (host, env_id) => {
      const admin = host.by(as.userIn(env_id, 'post:admin', 'post:write'));
      await admin.addSuppression({ targetEnvId: env_id, body: { address: 'ada@example.org' } });
      await admin.addTemplate({ targetEnvId: env_id, body: { key: 'shop.welcome', locale: 'en', subject: 'Welcome', body: 'Come in.' } });
      const { notification_id } = await host.by(as.machine('shop-post', 'post:write')).send({
        body: { env_id, category: 'transaction', recipient: { user_id: 'ada' }, subject: 'Hello', body: 'It happened.' },
      });
      const log = { targetEnvId: env_id, params: { notification_id } };
      await expect.poll(async () => (await admin.messageDeliveries(log)).items.length).toBeGreaterThan(0);
      return { messageDeliveries: { notification_id } };
    },
    unlisted: {
      listMailbox: 'Only the built-in mail catcher of a development machine fills it.',
      listDeadLetters: 'What cannot be delivered is dead after its tries; the suite of deliveries shows it.',
    },
  },
);
