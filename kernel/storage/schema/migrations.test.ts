import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { afterAll, beforeAll, expect, test, vi } from 'vitest';
import { TestCluster } from '../fixtures/test-cluster.ts';
import { migrate } from './migrations.ts';
import type { PostgresPool } from '../postgres/postgres-pool.ts';

vi.setConfig({ testTimeout: 30_000, hookTimeout: 60_000 });

let cluster: TestCluster;
let root: string;
let count = 0;
beforeAll(async () => {
  cluster = await TestCluster.start();
  root = mkdtempSync(join(tmpdir(), 'platform-test-'));
});
afterAll(async () => {
  await cluster[Symbol.asyncDispose]();
  rmSync(root, { recursive: true });
});

/** A new service with a folder of migrations. */
async function service(
  files: Record<string, string>,
): Promise<{ sql: PostgresPool; service: string; directory: URL; write(name: string, sql: string): void; remove(name: string): void }> {
  const name = `svc${++count}`;
  const directory = mkdtempSync(join(root, 'm-'));
  const write = (file: string, sql: string): void => writeFileSync(join(directory, file), sql);
  for (const [file, sql] of Object.entries(files)) write(file, sql);
  return {
    sql: await cluster.pool(name),
    service: name,
    directory: pathToFileURL(directory),
    write,
    remove: file => rmSync(join(directory, file)),
  };
}

const TWO = {
  '0001_one.sql': 'create table one (id int); insert into one values (1);',
  '0002_two.sql': 'create table two as select * from one;',
};

test('files are applied once, in order, after the kernel’s own, and later ones when they come', async () => {
  const at = await service(TWO);
  const builtins = [{ name: 'kernel_test_1', sql: 'create table kernel_test (id int)' }];
  expect(await migrate({ ...at, builtins })).toEqual(['kernel_test_1', '0001_one.sql', '0002_two.sql']);
  expect(await migrate({ ...at, builtins })).toEqual([]);
  at.write('0003_three.sql', 'alter table two add column more text');
  expect(await migrate({ ...at, builtins })).toEqual(['0003_three.sql']);
  expect(await at.sql.sql`select * from two`).toEqual([{ id: 1, more: null }]);
});

test('processes that migrate at once share the work', async () => {
  const at = await service(TWO);
  const applied = await Promise.all(Array.from({ length: 4 }, () => migrate(at)));
  expect(applied.flat().sort()).toEqual(['0001_one.sql', '0002_two.sql']);
});

test('a file that fails leaves nothing of itself, keeps what came before, and is named with its line', async () => {
  const at = await service({ ...TWO, '0003_bad.sql': 'create table half (id int);\ncreate table half (id int);' });
  await expect(migrate(at)).rejects.toMatchObject({
    code: 'migration_failed',
    message: expect.stringContaining('0003_bad.sql'),
    fix: expect.any(String),
  });
  expect(await at.sql.sql`select name from schema_migrations order by name`).toEqual([{ name: '0001_one.sql' }, { name: '0002_two.sql' }]);
  expect(await at.sql.sql`select to_regclass('half') as half`).toEqual([{ half: null }]);
});

test('a file changed after it was applied is refused', async () => {
  const at = await service(TWO);
  await migrate(at);
  at.write('0001_one.sql', `${TWO['0001_one.sql']} -- harmless`);
  await expect(migrate(at)).rejects.toMatchObject({ code: 'migration_changed', message: expect.stringContaining('0001_one.sql') });
});

test('gaps, doubles and strange names are refused before anything is applied', async () => {
  for (const [file, code] of [
    ['0003_gap.sql', 'gap'],
    ['0001_again.sql', 'gap'],
    ['two.sql', 'name'],
  ] as const) {
    const at = await service({ '0001_one.sql': 'create table one (id int)', [file]: 'select 1' });
    await expect(migrate(at)).rejects.toMatchObject({ code: `migration_${code}` });
    expect(await at.sql.sql`select to_regclass('one') as one`).toEqual([{ one: null }]);
  }
});

test('a file with another name in the place of an applied one is refused', async () => {
  const at = await service(TWO);
  await migrate(at);
  at.remove('0001_one.sql');
  at.write('0001_other.sql', 'select 1');
  await expect(migrate(at)).rejects.toMatchObject({ code: 'migration_out_of_order' });
});

test('an older release runs beside a newer one’s schema', async () => {
  const at = await service(TWO);
  await migrate(at);
  at.remove('0002_two.sql');
  expect(await migrate(at)).toEqual([]);
});
