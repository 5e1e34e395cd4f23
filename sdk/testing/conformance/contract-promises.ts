import { checkManifest } from '@platform/kernel/host/plugin/checks/checks';
import { formatFinding } from '@platform/kernel/host/plugin/checks/finding';
import { expect, test } from 'vitest';
import type { BootedHost } from '../boot.ts';
import type { ConformanceSubject } from './conformance-subject.ts';

/** Made by the kernel in every schema; it looks after them itself. */
const KERNEL_TABLES = new Set(['outbox', 'inbox', 'work_tasks', 'work_jobs', 'idempotent_answers', 'consumer_leads']);

/** What a contract must say. */
export function contractPromises(subject: ConformanceSubject): void {
  test('the contract passes the checks', async () => {
    await subject.use(async host => {
      expect(
        checkManifest(host.manifest)
          .filter(({ id }) => id.startsWith('E'))
          .map(formatFinding),
      ).toEqual([]);
    });
  });

  test('every table with rows of environments says what becomes of them when theirs is deleted', async () => {
    await subject.use(async host => {
      const { purge = {}, keep = {} } = host.manifest.onEnvironmentDeleted ?? {};
      const tables = await tablesOfEnvironments(host);
      expect(tables.filter(table => !(table in purge) && !(table in keep))).toEqual([]);
      expect(Object.keys(purge).filter(table => !tables.includes(table))).toEqual([]);
    });
  });
}

/** Tables of the service's own with a column `env_id`, whose rows do not go with rows of another of its tables. */
async function tablesOfEnvironments(host: Pick<BootedHost<never>, 'sql'>): Promise<string[]> {
  const sql = await host.sql();
  const rows = await sql<{ name: string }[]>`
    select c.relname as name from pg_class c join pg_namespace n on n.oid = c.relnamespace join pg_attribute a on a.attrelid = c.oid
    where n.nspname = current_schema() and c.relkind in ('r', 'p') and not c.relispartition and a.attname = 'env_id' and not a.attisdropped
      and not exists (select from pg_constraint where conrelid = c.oid and contype = 'f' and confdeltype = 'c')
    order by 1`;
  return rows.map(({ name }) => name).filter(name => !KERNEL_TABLES.has(name));
}
