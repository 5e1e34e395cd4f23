import type { AnyContract } from '@platform/sdk';
import type { BootedHost } from '../boot.ts';

/** Made by the kernel in every schema; it looks after them itself. */
export const KERNEL_TABLES: ReadonlySet<string> = new Set([
  'outbox',
  'inbox',
  'work_tasks',
  'work_jobs',
  'idempotent_answers',
  'consumer_leads',
  'schema_migrations',
  'service_keys',
]);

/** Tables of the service's own. */
export async function ownTables(host: Pick<BootedHost<AnyContract>, 'sql'>): Promise<string[]> {
  const sql = await host.sql();
  const rows = await sql<{ name: string }[]>`
    select c.relname as name from pg_class c join pg_namespace n on n.oid = c.relnamespace
    where n.nspname = current_schema() and c.relkind in ('r', 'p') and not c.relispartition order by 1`;
  return rows.map(({ name }) => name).filter(name => !KERNEL_TABLES.has(name));
}

/** How many rows the service holds, by table. */
export async function rowCounts(host: BootedHost<AnyContract>): Promise<Readonly<Record<string, number>>> {
  const { raw } = await host.pool();
  const counts: Record<string, number> = {};
  for (const table of await ownTables(host)) {
    const [row] = await raw<{ count: number }[]>`select count(*)::int as count from ${raw(table)}`;
    counts[table] = row?.count ?? 0;
  }
  return counts;
}

/** Something of every type that columns have; another each time where rows must differ. */
const VALUES: Readonly<Record<string, string>> = {
  uuid: 'gen_random_uuid()',
  text: 'gen_random_uuid()::text',
  'character varying': 'gen_random_uuid()::text',
  integer: '(random() * 1000000)::int',
  smallint: '1',
  bigint: '(random() * 1000000)::bigint',
  numeric: '1',
  'double precision': '1',
  boolean: 'false',
  jsonb: "'{}'::jsonb",
  json: "'{}'::json",
  bytea: 'sha256(gen_random_uuid()::text::bytea)',
  date: 'current_date',
  'timestamp with time zone': 'now()',
  interval: "interval '1 second'",
  inet: "'203.0.113.7'::inet",
};

/** Writes a row of an environment into a table, whatever its other columns; what they check or point to is let go for it. */
export async function plantRow(host: BootedHost<AnyContract>, table: string, envId: string): Promise<void> {
  const { raw } = await host.pool();
  await raw.begin(async tx => {
    const held = await tx<{ name: string }[]>`
      select conname as name from pg_constraint where conrelid = ${table}::regclass and contype in ('c', 'f') and conislocal`;
    for (const { name } of held) await tx`alter table ${tx(table)} drop constraint ${tx(name)}`;
    const columns = await tx<{ name: string; type: string }[]>`
      select attname as name, format_type(atttypid, null) as type from pg_attribute
      where attrelid = ${table}::regclass and attnum > 0 and not attisdropped and attnotnull and not atthasdef
        and attidentity = '' and attgenerated = '' and attname <> 'env_id'`;
    const values = columns.map(({ name, type }) => {
      const value = type.endsWith('[]') ? `'{}'::${type}` : VALUES[type];
      if (value === undefined) throw new Error(`the kit knows no value for ${table}.${name} of type ${type}`);
      return value;
    });
    const names = ['env_id', ...columns.map(({ name }) => name)].map(name => `"${name}"`);
    await tx.unsafe(`insert into "${table}" (${names.join(', ')}) values (${[`'${envId}'`, ...values].join(', ')})`);
  });
}
