import { createHash } from 'node:crypto';
import { readdir, readFile } from 'node:fs/promises';
import type postgres from 'postgres';
import type { PostgresPool } from '../postgres/postgres-pool.ts';
import { nameEnvironment } from './row-security.ts';
import { StorageError } from '../storage-error.ts';

export interface Migration {
  readonly name: string;
  readonly sql: string;
}

export interface MigrateOptions {
  readonly sql: PostgresPool;
  readonly service: string;
  /** Holds `0001_orgs.sql`, `0002_envs.sql`, ...; missing when the service has no tables of its own. */
  readonly directory?: URL;
  /** Tables the kernel adds to every service, applied first, in this order. */
  readonly builtins?: readonly Migration[];
}

/** A schema and its migrations do not fit; a person must look. Codes: `name`, `gap`, `changed`, `out_of_order`, `failed`. */
export class MigrationError extends StorageError {
  constructor(code: string, message: string, more: { fix: string; cause?: unknown }) {
    super(`migration_${code}`, message, more);
    this.name = 'MigrationError';
  }
}

/**
 * Brings a service's schema forward and returns the names it applied. Each file is one transaction. Names in the table that are newer
 * than the newest file are a later release's and are left alone: today's code must run beside it.
 */
export async function migrate({ sql, service, directory, builtins = [] }: MigrateOptions): Promise<string[]> {
  const files = directory === undefined ? [] : await numbered(directory);
  const plan = [...builtins, ...files].map(migration => ({
    ...migration,
    checksum: createHash('sha256').update(migration.sql).digest('hex'),
  }));
  const applied: string[] = [];
  for (let left = plan.length + 1; left > 0; left--) {
    // The lock and the look at what is applied are in the transaction that applies, so any number of processes may take turns.
    const name = await sql.raw.begin(async tx => {
      await tx`set local statement_timeout = '10min'`;
      // A file is about all rows, also those of tables that are held to an environment.
      await nameEnvironment(tx);
      await tx`select pg_advisory_xact_lock(hashtextextended(${`platform:migrate:${service}`}, 0))`;
      await tx`create table if not exists schema_migrations (name text primary key, checksum text not null,
        applied_at timestamptz not null default now())`;
      const done = new Map(
        (await tx<{ name: string; checksum: string }[]>`select name, checksum from schema_migrations`).map(row => [row.name, row.checksum]),
      );
      compare(service, plan, files, done);
      const next = plan.find(({ name }) => !done.has(name));
      if (next !== undefined) await apply(tx, service, next);
      return next?.name;
    });
    if (name === undefined) break;
    applied.push(name);
  }
  return applied;
}

async function apply(
  tx: postgres.TransactionSql,
  service: string,
  { name, sql, checksum }: Migration & { checksum: string },
): Promise<void> {
  try {
    await tx.unsafe(sql);
  } catch (cause) {
    const { message, position, code } = cause as postgres.PostgresError;
    // Without an SQLSTATE it is the connection that failed, not the file.
    if (!/^[0-9A-Z]{5}$/.test(code ?? '') || /^(57|08|53)/.test(code)) throw cause;
    const line = position === undefined ? '' : ` at line ${sql.slice(0, Number(position)).split('\n').length}`;
    throw new MigrationError('failed', `${service}: ${name} failed${line}: ${message}`, {
      fix: 'correct the file; nothing of it was applied',
      cause,
    });
  }
  await tx`insert into schema_migrations (name, checksum) values (${name}, ${checksum})`;
}

function compare(
  service: string,
  plan: readonly (Migration & { checksum: string })[],
  files: readonly Migration[],
  done: ReadonlyMap<string, string>,
): void {
  for (const { name, checksum } of plan) {
    const before = done.get(name);
    if (before !== undefined && before !== checksum) {
      throw new MigrationError('changed', `${service}: ${name} was changed after it was applied`, {
        fix: 'restore the file and put the change into a new one',
      });
    }
  }
  const numbers = [...done.keys()].map(numberOf).filter(number => number > 0);
  const highest = Math.max(0, ...numbers);
  const late = files.find(({ name }) => numberOf(name) < highest && !done.has(name));
  if (late !== undefined) {
    throw new MigrationError(
      'out_of_order',
      `${service}: ${late.name} is new, but ${String(highest).padStart(4, '0')} is already applied`,
      {
        fix: 'give the new file the next free number, and do not rename an applied one',
      },
    );
  }
}

async function numbered(directory: URL): Promise<Migration[]> {
  const names = (await readdir(directory)).filter(name => name.endsWith('.sql')).sort();
  names.forEach((name, index) => {
    if (!/^\d{4}_[a-z0-9_]+\.sql$/.test(name))
      throw new MigrationError('name', `${name} is no migration's name`, { fix: 'call it like 0001_orgs.sql' });
    if (numberOf(name) !== index + 1)
      throw new MigrationError('gap', `${name} follows number ${index}`, {
        fix: 'number the files 0001, 0002, ... without gaps or doubles',
      });
  });
  const base = directory.href.endsWith('/') ? directory : new URL(`${directory.href}/`);
  return Promise.all(names.map(async name => ({ name, sql: await readFile(new URL(name, base), 'utf8') })));
}

function numberOf(name: string): number {
  return Number(/^(\d{4})_[a-z0-9_]+\.sql$/.exec(name)?.[1] ?? 0);
}
