import { randomBytes } from 'node:crypto';
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { KeySeeds, SealedBox } from '@platform/sdk';
import { openTestStores, type TestStores } from '@platform/testing';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import type { Manifest } from '../../base/manifest.ts';
import { SecretChain } from '../../secrets/secret-chain.ts';
import { migrate } from '../../storage/schema/migrations.ts';
import { PostgresPool } from '../../storage/postgres/postgres-pool.ts';
import { roleOf, schemaOf } from '../../storage/schema/service-schema.ts';
import { readKeySettings } from './key-settings.ts';
import { KEY_MIGRATIONS, openKeys } from './service-keys.ts';

const manifest = {
  id: 'vault',
  vertical: 'platform',
  keys: {
    box: { use: 'seal', description: 'Seals', documented: 'PLATFORM_VAULT_KEY_REF', file: 'vault.key' },
    trail: { use: 'seeds', description: 'Signs' },
  },
} as unknown as Manifest;

let stores: TestStores;
let pool: PostgresPool;
let dataDir: string;
beforeAll(async () => {
  stores = await openTestStores();
  await stores.stores.ensureService('vault');
  const { host, port, database } = stores.stores.database;
  const leaf = await stores.authority.classical.issue({
    commonName: 'svc.vault',
    names: ['uri:urn:platform:workload:vault'],
    usages: ['client'],
    days: 1,
  });
  const ssl = {
    ca: stores.authority.classical.files.rootCertificate,
    cert: leaf.chain,
    key: leaf.key as string,
    servername: 'postgres.platform.internal',
  };
  pool = new PostgresPool({ host, port, database, schema: schemaOf('vault'), user: roleOf('vault'), ssl });
  await migrate({ sql: pool, service: 'vault', builtins: KEY_MIGRATIONS });
});
afterAll(async () => {
  await pool?.close(0);
  await stores?.[Symbol.asyncDispose]();
});
beforeEach(async () => {
  dataDir = mkdtempSync(join(stores.dataDir, 'vault-'));
  await pool.sql`delete from service_keys`;
});

const open = async (environment: Record<string, string> = {}) => {
  const { keys } = readKeySettings(manifest, environment, false);
  const opened = await openKeys({ manifest, settings: keys, dataDir, secrets: new SecretChain({ environment }), sql: pool.sql });
  return opened as { box: SealedBox; trail: KeySeeds };
};
const file = () => join(dataDir, 'keys', 'vault.key');
const secret = (name: string, text = randomBytes(32).toString('base64')) => {
  mkdirSync(join(dataDir, 'given'), { recursive: true });
  writeFileSync(join(dataDir, 'given', name), text, { mode: 0o600 });
  return `file://${join(dataDir, 'given', name)}`;
};

describe('a key of a service', () => {
  test('F-29 is made for development while no data rest on it, for its owner alone, and is the same from then on', async () => {
    const [first, beside] = await Promise.all([open(), open()]);
    const sealed = first.box.seal('mail', 'a secret');
    expect([beside.box.open('mail', sealed), (await open()).box.open('mail', sealed)]).toEqual(['a secret', 'a secret']);
    expect([statSync(file()).mode & 0o777, Buffer.from(readFileSync(file(), 'utf8'), 'base64').length]).toEqual([0o600, 32]);
    expect(Buffer.from((await first.trail.read()) ?? []).toString()).toBe(readFileSync(join(dataDir, 'keys', 'vault-trail.key'), 'utf8'));
  });

  test.each([['vault.key'], ['vault-trail.key']])(
    'F-29 that was lost keeps the service from starting: %s is named, and none is made in its place',
    async name => {
      await open();
      const path = join(dataDir, 'keys', name);
      rmSync(path);
      await expect(open()).rejects.toThrow(`The key ${path} is missing, and the data of vault rest on it.`);
      expect(existsSync(path)).toBe(false);
    },
  );

  test('F-29 that is cut short, or that others can read, keeps the service from starting by its name', async () => {
    await open();
    const whole = readFileSync(file(), 'utf8');
    writeFileSync(file(), whole.slice(0, 20));
    await expect(open()).rejects.toThrow(`${file()} holds no key of 32 bytes`);
    rmSync(file());
    writeFileSync(file(), whole, { mode: 0o644 });
    await expect(open()).rejects.toThrow(`${file()} holds no key of 32 bytes`);
  });

  test('F-29 another key than the data rest on is refused, until the old one is named before it; then it stands alone', async () => {
    const old = { PLATFORM_VAULT_KEY_REF: secret('old') };
    const sealed = (await open(old)).box.seal('mail', 'a secret');
    const next = { PLATFORM_VAULT_KEY_REF: secret('next') };
    await expect(open(next)).rejects.toThrow(
      `PLATFORM_VAULT_KEY_REF (${next.PLATFORM_VAULT_KEY_REF}) is not the key that the data of vault rest on`,
    );
    const both = await open({ ...next, PLATFORM_VAULT_KEY_REF_PREVIOUS: old.PLATFORM_VAULT_KEY_REF });
    expect([both.box.open('mail', sealed), both.box.isStale(sealed)]).toEqual(['a secret', true]);
    expect((await open(next)).box.open('mail', sealed)).toBeUndefined();
    await expect(open(old)).rejects.toThrow('is not the key');
    await expect(open({ ...next, PLATFORM_VAULT_KEY_REF_PREVIOUS: 'file:///absent' })).rejects.toThrow(
      'PLATFORM_VAULT_KEY_REF_PREVIOUS names file:///absent, which cannot be read',
    );
  });

  test('F-29 comes from a setting as itself or as a reference, which is named when it cannot be read; the key itself never is', async () => {
    const key = randomBytes(32).toString('base64');
    const sealed = (await open({ PLATFORM_VAULT_KEY_REF: key })).box.seal('mail', 'a secret');
    expect((await open({ PLATFORM_VAULT_KEY_REF: secret('same', `${key}\n`) })).box.open('mail', sealed)).toBe('a secret');
    expect(existsSync(file())).toBe(false);
    await expect(open({ PLATFORM_VAULT_KEY_REF: 'file:///absent' })).rejects.toThrow(
      'PLATFORM_VAULT_KEY_REF (file:///absent) holds no key',
    );
    const other = randomBytes(32).toString('base64');
    const reason: unknown = await open({ PLATFORM_VAULT_KEY_REF: other }).catch((error: unknown) => error);
    expect([String(reason).includes('PLATFORM_VAULT_KEY_REF is not the key'), String(reason).includes(other)]).toEqual([true, false]);
  });

  test('F-29 is missed in production, by the name of its setting', () => {
    const { faults } = readKeySettings(manifest, { PLATFORM_VAULT_KEY_REF: '' }, true);
    expect(faults.map(({ variable, purpose, fault }) => `${variable} ${fault} (${purpose})`)).toEqual([
      'PLATFORM_VAULT_KEY_REF is missing (Seals)',
      'PLATFORM_VAULT_TRAIL_KEY_REF is missing (Signs)',
    ]);
    expect(readKeySettings({ ...manifest, id: 'till', vertical: 'lab' }, {}, true).faults.map(({ variable }) => variable)).toEqual([
      'PLATFORM_VAULT_KEY_REF',
      'LAB_TILL_TRAIL_KEY_REF',
    ]);
  });
});
