import { expect, test, vi } from 'vitest';
import { Usage } from '../src/usage/usage.ts';

const PROPERTY = '01900000-0000-7000-8000-0000000000a1';
const aggregate = (metrics: Record<string, number>) => ({
  ...{ id: 'e1', event: 'platform:stat.aggregate.updated', envId: PROPERTY, attempt: 1, correlationId: 'c' },
  payload: { property_id: PROPERTY, window: { from: '2026-01-01T00:00:00.000Z' }, metrics },
});

test('APP-024 where there is no statistics service to give a token for, events are acknowledged and nothing is asked or written', async () => {
  const touched = vi.fn();
  const untouchable = new Proxy({}, { get: (_, name) => touched(name) });
  const ctx = {
    catalog: { manifests: () => [{ id: 'sys' }, { id: 'auth' }] },
    db: untouchable,
    services: untouchable,
    log: untouchable,
    clock: untouchable,
  };
  await new Usage(ctx as never).take(aggregate({ visits: 1 }));
  expect(touched).not.toHaveBeenCalled();
});
