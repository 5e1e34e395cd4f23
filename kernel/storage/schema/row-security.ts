import type postgres from 'postgres';
import type { PostgresPool } from '../postgres/postgres-pool.ts';
import { SETTING, EVERY } from './row-environment.ts';

const POLICY = 'rows_of_environment';

/** Says in words what is missing: without it a forgotten environment would look like an empty table. */
const ROW_ENVIRONMENT = `
create or replace function row_environment() returns text language plpgsql stable as $$
declare named text := current_setting('${SETTING}', true);
begin
  if named is null or named = '' then
    raise exception 'this statement names no environment' using errcode = '42501', hint = 'ask through db.of(envId), or db.ofAll()';
  end if;
  return named;
end $$`;
// Each call is a subquery of its own: Postgres asks it once for a statement, not once for a row.
const HOLDS = `env_id = (select nullif(row_environment(), '${EVERY}')::uuid) or (select row_environment()) = '${EVERY}'`;

interface Secured {
  readonly name: string;
  readonly secured: boolean;
  readonly held: boolean;
}

/**
 * Holds the rows of `tables` to the environment that a transaction names, and lets go of those that are held and not among them. It is the
 * second wall behind `where env_id = …`: a statement that forgot the condition sees no row of another environment, and one whose
 * transaction names none fails. Nothing is altered, and nothing locked, where all is as it should be.
 */
export async function secureRows({ raw }: PostgresPool, tables: readonly string[]): Promise<void> {
  await raw.begin(async tx => {
    const found = await tx<Secured[]>`
      select c.relname as name, c.relrowsecurity and c.relforcerowsecurity as secured,
             exists (select from pg_policy where polrelid = c.oid and polname = ${POLICY}) as held
      from pg_class c where c.relnamespace = current_schema()::regnamespace and c.relkind in ('r', 'p')`;
    const wrong = found.filter(({ name, secured, held }) => (tables.includes(name) ? !(secured && held) : held));
    const missing = tables.filter(table => !found.some(({ name }) => name === table));
    if (missing.length > 0) throw new Error(`rowSecurity names ${missing.join(', ')}: no migration makes such a table`);
    if (wrong.length === 0) return;
    await tx.unsafe(ROW_ENVIRONMENT);
    for (const { name } of wrong) {
      const wanted = tables.includes(name);
      await tx.unsafe(`drop policy if exists ${POLICY} on "${name}"`);
      if (wanted) await tx.unsafe(`create policy ${POLICY} on "${name}" using (${HOLDS})`);
      const [row, force] = wanted ? ['enable', 'force'] : ['disable', 'no force'];
      await tx.unsafe(`alter table "${name}" ${row} row level security, ${force} row level security`);
    }
  });
}

/** Names the environment for the rest of the transaction; without one, all of them. Not waited for: it is sent before what follows. */
export function nameEnvironment(tx: postgres.TransactionSql | postgres.Sql, envId?: string): Promise<unknown> {
  const named = tx`select set_config(${SETTING}, ${envId ?? EVERY}, true)`.execute();
  // The next statement hears the failure too: the transaction is over.
  named.catch(() => undefined);
  return named;
}
