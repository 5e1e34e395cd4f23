import { servicePool } from './service-pool.ts';
import type { TestStores } from './stores.ts';

/** The names of what a service has handed to a real bus, as its outbox still has them. */
export async function relayedEvents(stores: TestStores, service: string): Promise<string[]> {
  await using pool = await servicePool(stores, service);
  const rows = await pool.sql<{ event_type: string }[]>`select distinct event_type from outbox where relayed`;
  return rows.map(({ event_type }) => event_type);
}
