import { join } from 'node:path';
import { as, boot, type BootedHost, openTestStores, type TestStores } from '@platform/testing';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { probePlugin } from '../../test/probe.ts';
import type { probe } from '../../test/probe-contract.ts';
import { eventually } from '../../storage/fixtures/eventually.ts';
import { type EmbeddedPostgres, startEmbeddedPostgres } from '../../storage/postgres/embedded-postgres.ts';
import { readRecord } from '../../storage/process-record.ts';

const plugin = probePlugin();
let stores: TestStores;
let again: EmbeddedPostgres | undefined;
let host: BootedHost<typeof probe>;
const ada = as.user('probe:things:read');

beforeAll(async () => {
  stores = await openTestStores();
  host = await boot<typeof probe, (typeof plugin)['uses']>(plugin, { stores });
});
afterAll(async () => {
  await host?.[Symbol.asyncDispose]();
  await again?.stop();
  await stores?.[Symbol.asyncDispose]();
});

const statusOf = async (path: string) => {
  const { status, headers, json } = await host.fetch(path, path === '/v1/whoami' ? { persona: ada } : {});
  return {
    status,
    code: json['code'],
    retry: headers['retry-after'],
    checks: json['checks'] as Record<string, { ok: boolean }> | undefined,
  };
};
const comesBack = (path: string) => eventually(async () => (await statusOf(path)).status).toBe(200);

test('without the key-value store it is the same: nobody is let in unchecked, and it comes back by itself', async () => {
  expect((await statusOf('/v1/whoami')).status).toBe(200);
  const record = readRecord(join(stores.dataDir, 'run', 'kv.json'));
  process.kill(record?.pid as number, 'SIGSTOP');
  try {
    const [readiness, request] = await Promise.all([statusOf('/v1/readiness'), statusOf('/v1/whoami')]);
    expect(readiness).toMatchObject({ status: 503, retry: '2', checks: { database: { ok: true }, key_value: { ok: false } } });
    expect(request).toMatchObject({ status: 503, code: 'not_ready', retry: expect.stringMatching(/^\d+$/) });
  } finally {
    process.kill(record?.pid as number, 'SIGCONT');
  }
  await comesBack('/v1/whoami');
  await comesBack('/v1/readiness');
});

test('without the database the service is not ready and its requests are 503 with Retry-After; it comes back by itself', async () => {
  expect((await statusOf('/v1/stored')).status).toBe(200);
  const leaf = await stores.authority.classical.issue({
    commonName: 'postgres.platform.internal',
    names: ['dns:postgres.platform.internal', 'ip:127.0.0.1'],
    usages: ['server'],
    days: 1,
  });
  const tls = { ca: stores.authority.classical.files.rootCertificate, cert: leaf.chain, key: leaf.key as string };
  const running = await startEmbeddedPostgres({ dataDir: stores.dataDir, tls });
  await running.stop();
  expect(await statusOf('/v1/readiness')).toMatchObject({
    status: 503,
    retry: '2',
    checks: { database: { ok: false }, key_value: { ok: true } },
  });
  expect(await statusOf('/v1/stored')).toMatchObject({ status: 503, code: 'not_ready', retry: expect.stringMatching(/^\d+$/) });
  expect((await statusOf('/v1/greet')).status).toBe(200);
  expect((await statusOf('/v1/health')).status).toBe(200);
  again = await startEmbeddedPostgres({ dataDir: stores.dataDir, tls });
  expect(again.port).toBe(running.port);
  await comesBack('/v1/stored');
  await comesBack('/v1/readiness');
});
