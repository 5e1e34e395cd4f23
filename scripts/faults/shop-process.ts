import { once } from 'node:events';
import { deliverTo } from '@platform/kernel/outbox/relay/bus-delivery';
import { insertEvent } from '@platform/kernel/outbox/outbox';
import { OUTBOX_MIGRATIONS } from '@platform/kernel/outbox/outbox-schema';
import { Relay } from '@platform/kernel/outbox/relay/relay';
import { migrate } from '@platform/kernel/storage/schema/migrations';
import { PostgresPool } from '@platform/kernel/storage/postgres/postgres-pool';
import { roleOf, schemaOf } from '@platform/kernel/storage/schema/service-schema';
import { Pool } from 'undici';
import type { ShopAsked, ShopOrder, ShopSaid } from './shop-child.ts';

/** Commits events into its outbox as it is told, and relays them to whichever bus answers. */
const [order] = (await once(process, 'message')) as [ShopOrder];
const say = (said: ShopSaid) => process.send?.(said);
const pool = new PostgresPool({ ...order.database, user: roleOf('shop'), schema: schemaOf('shop'), ssl: order.ssl });
for (;;) {
  try {
    await migrate({ sql: pool, service: 'shop', builtins: OUTBOX_MIGRATIONS });
    break;
  } catch {
    // The database may be the one that died.
    await new Promise(resolve => setTimeout(resolve, 50));
  }
}
const buses = order.ports.map(
  port =>
    new Pool(`https://127.0.0.1:${port}`, {
      connections: 4,
      headersTimeout: 5_000,
      bodyTimeout: 5_000,
      connect: { ...order.tls, timeout: 5_000, minVersion: 'TLSv1.3' },
    }),
);
let turn = 0;
const relay = new Relay({
  log: { warn: () => {}, error: () => {} },
  callTimeoutMs: 8_000,
  deliver: deliverTo({
    produceBatch: async (_, events, signal) => {
      const bus = buses[turn++ % buses.length] as Pool;
      const { statusCode, body } = await bus.request({
        method: 'POST',
        path: '/v1/produce/batch',
        headers: order.headers,
        body: JSON.stringify({ events }),
        signal,
      });
      if (statusCode !== 200) throw new Error(`answered ${statusCode}`);
      return (await body.json()) as { results: { message_id: string }[] };
    },
    recordAudits: () => Promise.reject(new Error('nothing is audited here')),
  }),
});
await relay.attach('shop', pool);

process.on('message', (asked: ShopAsked) => {
  if ('commit' in asked) void commit(asked.commit);
});
process.once('disconnect', () => process.exit(0));
// A driver that loses its session in the middle of a write may throw past everybody: a service dies of it, and is started again.
say({ ready: true });

async function commit({ env, producer, n, key }: Extract<ShopAsked, { commit: object }>['commit']): Promise<void> {
  try {
    await insertEvent(pool.sql, {
      id: key,
      env_id: env,
      event_type: 'platform:shop:order:created',
      stream_family: 'app',
      payload: { producer, n },
      correlation_id: 'faults',
      publisher_subject: 'shop',
    });
  } catch (error) {
    // There already: the answer to the first try was lost, not the row.
    if ((error as { code?: string }).code !== '23505') return;
  }
  say({ committed: { producer, n } });
}
