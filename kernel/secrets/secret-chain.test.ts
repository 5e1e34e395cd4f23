import { chmodSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, expect, test } from 'vitest';
import { SecretChain, withSecret } from './secret-chain.ts';

const directory = mkdtempSync(join(tmpdir(), 'platform-test-'));
afterAll(() => rmSync(directory, { recursive: true, force: true }));
const file = (name: string, mode: number, text = `${name} secret`) => {
  writeFileSync(join(directory, name), text);
  chmodSync(join(directory, name), mode);
  return `file://${join(directory, name)}`;
};
const asked: string[] = [];
const chain = new SecretChain({
  directory,
  environment: { TOKEN: 'from environment', EMPTY: '', shared: 'environment', onlyenv: 'environment' },
  backends: {
    vault: async path => (asked.push(path), path === 'mount/path#key' ? Buffer.from('from vault') : undefined),
    broken: async () => {
      throw new Error('the value is hunter2');
    },
  },
});
const read = async (reference: string) => {
  const value = await chain.read(reference);
  return value && Buffer.from(value).toString();
};

test('KRN-013 a reference `<backend>://<path>` is read from its backend alone; anything else is unresolved', async () => {
  expect(await read('env://TOKEN')).toBe('from environment');
  expect(await read(file('a', 0o600))).toBe('a secret');
  expect(await read(file('b', 0o400))).toBe('b secret');
  expect(await read('vault://mount/path#key')).toBe('from vault');
  expect(asked).toEqual(['mount/path#key']);
  for (const reference of [
    'env://EMPTY',
    'env://ABSENT',
    'vault://other',
    'nowhere://x',
    'broken://x',
    'file://relative',
    `file://${directory}/absent`,
    `file://${directory}`,
    'env://',
    '://x',
    '../a',
    'a/b',
    '',
    'UPPER://TOKEN',
  ]) {
    expect([reference, await read(reference)]).toEqual([reference, undefined]);
  }
});

test('a file that others can read, or that is no secret by its size, is unresolved', async () => {
  for (const mode of [0o644, 0o640, 0o660, 0o700])
    expect([mode, await read(file(`m${mode.toString(8)}`, mode))]).toEqual([mode, undefined]);
  expect(await read(file('big', 0o600, 'x'.repeat(65_537)))).toBeUndefined();
});

test('a bare name tries secrets, file and environment, in this order', async () => {
  file('shared', 0o600, 'file');
  expect(await read('shared')).toBe('file');
  expect(await read('onlyenv')).toBe('environment');
  const first = new SecretChain({ directory, environment: {}, backends: { secrets: async path => Buffer.from(`service ${path}`) } });
  expect(Buffer.from((await first.read('shared')) as Uint8Array).toString()).toBe('service shared');
});

test('a value is fresh every time and zeroed after its use, whatever happens', async () => {
  const [one, two] = [(await chain.read('env://TOKEN')) as Uint8Array, (await chain.read('env://TOKEN')) as Uint8Array];
  await expect(
    withSecret(one, async () => {
      throw new Error('no');
    }),
  ).rejects.toThrow('no');
  expect([...one].every(byte => byte === 0)).toBe(true);
  expect(Buffer.from(two).toString()).toBe('from environment');
});
