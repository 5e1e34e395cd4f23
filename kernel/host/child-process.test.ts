import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { openTestStores, type TestStores } from '@platform/testing';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { anchorsOf } from '../identity/trust-anchors.ts';
import { Workload } from '../identity/workload.ts';
import type { Directory, Instance } from '../routing/directory.ts';
import { eventually } from '../storage/fixtures/eventually.ts';
import { connectKeyValue, type KeyValue } from '../storage/key-value.ts';
import { startedAt } from '../storage/process-record.ts';
import { type Bootstrap, platformHost } from './bootstrap.ts';
import { serviceProcess } from './child-process.ts';
import { keyValuePort } from './key-value-port.ts';
import { readPlugin } from './loader.ts';
import { mintFor } from './mint.ts';
import type { SupervisedProcess } from './process/supervised-process.ts';

const quiet = { debug: () => undefined, info: () => undefined, warn: () => undefined, error: () => undefined };
const CONTRACT = `export const tiny = { base: { id: 'tiny', title: 'Tiny', vertical: 'lab', placement: { tier: 50 } }, actions: {}, problems: {}, events: {}, routes: {} };`;
const PLUGIN = `import { tiny } from './contract.js'; export default { contract: tiny, uses: {}, setup: () => ({ routes: {} }) };`;

let stores: TestStores;
let store: KeyValue;
let child: SupervisedProcess;

beforeAll(async () => {
  stores = await openTestStores();
  const { dataDir, authority } = stores;
  const directory = join(dataDir, 'tiny');
  mkdirSync(directory);
  writeFileSync(join(directory, 'package.json'), JSON.stringify({ name: 'tiny', version: '1.0.0', type: 'module', platform: { contract: 'contract.js', plugin: 'plugin.js' } }));
  writeFileSync(join(directory, 'contract.js'), CONTRACT);
  writeFileSync(join(directory, 'plugin.js'), PLUGIN);
  const { manifest } = await readPlugin(directory);
  await stores.stores.ensureService('tiny');
  store = await connectKeyValue(stores.stores.keyValueUrl);
  const bootstrap: Bootstrap = {
    domain: 'localhost',
    production: false,
    dataDir,
    build: 'test',
    logLevel: 'error',
    edgePort: 8443,
    pqMode: 'strict',
    anchors: anchorsOf(authority),
    database: stores.stores.database,
    keyValueUrl: stores.stores.keyValueUrl,
    manifests: [manifest],
    enrollment: {},
  };
  // There is no certificate authority to enroll at: it finds its certificates.
  await Workload.open({
    name: 'tiny',
    directory: join(dataDir, 'keys'),
    anchors: bootstrap.anchors,
    pqMode: 'strict',
    hostnames: [platformHost('tiny', 'localhost')],
    kinds: ['client', 'database', 'listener'],
    mint: mintFor({ bootstrap, authority, directory: undefined as unknown as Directory }),
  });
  child = serviceProcess({
    name: 'tiny',
    pluginDirectory: directory,
    placement: manifest.placement,
    environment: process.env,
    settings: [],
    life: { baseMs: 10 },
    kv: await keyValuePort(store),
    dataDir,
    log: quiet,
    bootstrap: async () => (await stores.stores.answer(), bootstrap),
  });
  await child.start();
});
afterAll(async () => {
  await child?.[Symbol.asyncDispose]();
  await store?.close();
  await stores?.[Symbol.asyncDispose]();
});

const rows = async () => (await store.client.hvals('captain:svc:tiny')).map(row => JSON.parse(row) as Instance);

test('F-15 a service whose process is killed is served by another one, and the dead one’s row is gone at once', async () => {
  const first = child.pid as number;
  expect((await rows()).map(({ pid, status }) => ({ pid, status }))).toEqual([{ pid: first, status: 'Active' }]);
  process.kill(first, 'SIGKILL');
  await eventually(async () => (await rows()).filter(({ pid }) => pid === first)).toEqual([]);
  await eventually(() => child.life.phase).toBe('running');
  expect((await rows()).map(({ pid, status }) => ({ pid, status }))).toEqual([{ pid: child.pid, status: 'Active' }]);
  expect([child.pid === first, startedAt(child.pid as number) !== null, child.life.restarts]).toEqual([false, true, 1]);
});

test('F-02 a host that stops takes the process and its row along', async () => {
  const last = child.pid as number;
  await child[Symbol.asyncDispose]();
  expect([startedAt(last), await rows()]).toEqual([null, []]);
});
