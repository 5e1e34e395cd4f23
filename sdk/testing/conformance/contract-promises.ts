import { checkManifest, formatFinding } from '@platform/checks';
import { newId } from '@platform/kernel/base/ids';
import { expect, test } from 'vitest';
import { as } from '../persona.ts';
import type { BootedHost } from '../boot.ts';
import type { ConformanceSubject } from './conformance-subject.ts';
import { KERNEL_TABLES, plantRow } from './rows.ts';

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

  test('the rows of a deleted environment go, all of them, and no row of another', async () => {
    await subject.use(async host => {
      const tables = Object.keys(host.manifest.onEnvironmentDeleted?.purge ?? {});
      const [kept, gone] = [newId(), newId()];
      for (const table of tables) for (const envId of [kept, gone]) await plantRow(host as never, table, envId);
      const held = async (envId: string) => {
        const { raw } = await host.pool();
        const counts: Record<string, number> = {};
        for (const table of tables) {
          const [row] = await raw<{ count: number }[]>`select count(*)::int as count from ${raw(table)} where env_id::text = ${envId}`;
          counts[table] = row?.count ?? 0;
        }
        return counts;
      };
      const each = (count: number) => Object.fromEntries(tables.map(table => [table, count]));
      expect([await held(kept), await held(gone)]).toEqual([each(1), each(1)]);
      const purge = async (envId: string) => {
        if (tables.length === 0) return;
        const ask = { method: 'POST', persona: as.machine('sys'), body: JSON.stringify({ env_ids: [envId] }) };
        expect((await host.fetch('/v1/internal/environments/purge', ask)).status).toBe(200);
      };
      await purge(gone);
      expect([await held(kept), await held(gone)]).toEqual([each(1), each(0)]);
      // What stands in a row that was made up is for no other check.
      await purge(kept);
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
