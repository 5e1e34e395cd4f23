import { expect, test } from 'vitest';
import { requireConnections } from './connection-budget.ts';

test('services whose pools do not fit the database are refused before they start, with the size that fits', () => {
  const asked = (pool: number, available: number) => () => requireConnections({ services: 16, pool, available });
  expect(asked(6, 197)).not.toThrow();
  expect(asked(6, 144)).not.toThrow();
  expect(asked(6, 143)).toThrow(/may take 144 connections, and the database gives 143. Set PLATFORM_DB_POOL to 5 or less/);
  expect(asked(6, 50)).toThrow(/^16 services with pools of 6 .* Raise its max_connections\.$/);
});
