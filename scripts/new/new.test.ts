import { spawnSync } from 'node:child_process';
import { cpSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { afterAll, expect, test } from 'vitest';
import { describeConformance } from '@platform/testing';
// @ts-expect-error a script without types: it runs before anything is installed
import { scaffold } from './scaffold.mjs';

const root = fileURLToPath(new URL('../../', import.meta.url));
// Inside the checkout, where the packages that the plugin imports are found.
mkdirSync(join(root, '.cache'), { recursive: true });
const ground = mkdtempSync(join(root, '.cache', 'new-'));
afterAll(() => rmSync(ground, { recursive: true, force: true }));

const made: { folder: string; files: string[] } = scaffold({
  kind: 'vertical',
  name: 'books',
  vertical: 'library',
  title: 'Book shelf',
  into: ground,
  root,
});
const { default: plugin } = await import(pathToFileURL(join(made.folder, 'src/plugin.ts')).href);

// What a new author is given does what every plugin must do.
describeConformance(plugin);
// Its own tests, as its author would run them.
await import(pathToFileURL(join(made.folder, 'test/items.test.ts')).href);

test('F-47 a new vertical passes the check of the command line', () => {
  const checked = spawnSync(
    process.execPath,
    ['--disable-warning=ExperimentalWarning', join(root, 'kernel/main.ts'), 'check', made.folder],
    { encoding: 'utf8' },
  );
  expect([checked.status, checked.stdout + checked.stderr]).toEqual([0, expect.not.stringContaining('E0')]);
});

test('a new service edits its own folder and the catalog, and nothing else', () => {
  const checkout = join(ground, 'checkout');
  cpSync(join(root, 'catalog'), join(checkout, 'catalog'), { recursive: true });
  const { folder, files } = scaffold({ kind: 'service', name: 'ledger', root: checkout });
  expect(folder).toBe(join(checkout, 'plugins', 'ledger'));
  expect(files).toEqual([
    'contract/index.ts',
    'migrations/0001_items.sql',
    'package.json',
    'src/items.ts',
    'src/plugin.ts',
    'test/conformance.test.ts',
    'test/items.test.ts',
  ]);
  const { services } = JSON.parse(readFileSync(join(checkout, 'catalog/platform.json'), 'utf8')) as {
    services: { service_type: string; start_priority: number }[];
  };
  const before = (JSON.parse(readFileSync(join(root, 'catalog/platform.json'), 'utf8')) as { services: object[] }).services;
  for (const name of readdirSync(join(checkout, 'catalog/distributions')))
    expect(JSON.parse(readFileSync(join(checkout, 'catalog/distributions', name), 'utf8'))).toMatchObject({ services: 'all' });
  expect(services).toEqual([...before, expect.objectContaining({ service_type: 'ledger', package: 'ledger', start_priority: 50 })]);
  for (const [name, why] of [
    ['ledger', 'is there already'],
    ['Ledger', 'is no name'],
    ['../x', 'is no name'],
    ['sys', 'has a service'],
  ] as const)
    expect(() => scaffold({ kind: 'service', name, root: checkout })).toThrow(why);
});
