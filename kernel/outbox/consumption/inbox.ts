import type { Sql } from '../../storage/schema/sql.ts';

/**
 * True the first time `consumer` sees `key`, false ever after. The mark is part of the transaction: a consumer that rolls back will see
 * the event again, and of two that handle it at once the second waits for the first one's outcome.
 */
export async function once(tx: Sql, consumer: string, key: string): Promise<boolean> {
  const rows = await tx<{ at: string }[]>`
    insert into inbox (consumer, idempotency_key) values (${consumer}, ${key}) on conflict do nothing returning at`;
  return rows.length === 1;
}
