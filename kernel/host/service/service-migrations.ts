import type { AnyPlugin } from '@platform/sdk';
import { OUTBOX_MIGRATIONS } from '../../outbox/outbox-schema.ts';
import { secureRows } from '../../storage/schema/row-security.ts';
import { migrate } from '../../storage/schema/migrations.ts';
import type { PostgresPool } from '../../storage/postgres/postgres-pool.ts';
import { WORK_MIGRATIONS } from '../../work/work-schema.ts';
import { KEY_MIGRATIONS } from '../keys/service-keys.ts';

/** Applies what the kernel and the plugin bring, in one place for a start of a service and for a migration alone. */
export async function migrateService(plugin: AnyPlugin, service: string, sql: PostgresPool): Promise<string[]> {
  const applied = await migrate({
    sql,
    service,
    builtins: [...OUTBOX_MIGRATIONS, ...KEY_MIGRATIONS, ...WORK_MIGRATIONS],
    ...(plugin.migrations ? { directory: plugin.migrations } : {}),
  });
  await secureRows(sql, plugin.contract.base.rowSecurity ?? []);
  return applied;
}
