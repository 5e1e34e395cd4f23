import { copyFileSync, mkdtempSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { OUTBOX_MIGRATIONS } from '@platform/kernel/outbox/outbox-schema';
import { migrate } from '@platform/kernel/storage/schema/migrations';
import { as, boot, openTestStores } from '@platform/testing';
import { expect, test } from 'vitest';
import plugin from '../../src/plugin.ts';
import { Directory } from '../fixtures/directory.ts';
import { registryPool, World } from '../fixtures/world.ts';

const ENV = '018f0000-0000-7000-8000-0000000000e1';

test('REG-004 what was recorded before there was a chain is chained in its order, and verifies', async () => {
  await using stores = await openTestStores();
  await stores.stores.ensureService('sys');
  await using pool = await registryPool(stores);
  const before = mkdtempSync(join(tmpdir(), 'platform-migrations-'));
  copyFileSync(new URL('../../migrations/0001_registry.sql', import.meta.url), join(before, '0001_registry.sql'));
  await migrate({ sql: pool, service: 'sys', builtins: OUTBOX_MIGRATIONS, directory: pathToFileURL(`${before}/`) });
  await pool.sql`
    insert into audit (audit_id, ts, service, env_id, action, actor, resource, outcome, details, correlation_id)
    select gen_random_uuid(), case when n < 4 then timestamptz '2026-01-02 03:04:05.678Z'
      else now() - interval '1 second' * (5 - n) end, 'func', ${ENV}, 'step.' || n, '{"kind":"user","id":"é"}',
      '{"type": "run", "id": "1"}', 'success', null, 'c'
    from generate_series(1, 5) n`;
  await using host = await boot(plugin, {
    stores,
    stubs: { identity: new Directory().identity },
    environment: World.environment(stores.dataDir),
  });
  await host.by(as.machine('func', 'audit:write')).recordAudit({ body: { env_id: ENV, action: 'step.6' } });
  const by = host.by(as.user('sys:sys:admin', 'audit:read'));
  expect(await by.verifyAudit({ query: { env_id: ENV } })).toMatchObject({ status: 'intact', rows: 6, anchors: 2, head: 6 });
  const { items } = await by.listAudit({ query: { env_id: ENV } });
  expect(items.map(({ action }) => action).slice(0, 3)).toEqual(['step.6', 'step.5', 'step.4']);
  expect(items.at(-1)).toMatchObject({ ts: '2026-01-02T03:04:05.678Z', actor: { kind: 'user', id: 'é' } });
});
