import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { DisposalStack } from '@platform/kernel/base/disposal-stack';
import { openStores, type Stores } from '@platform/kernel/host/boot/stores';
import { connectKeyValue } from '@platform/kernel/storage/key-value';
import { type ProcessRecord, readRecord } from '@platform/kernel/storage/process-record';
import { type Authority, openAuthority } from '@platform/kernel/identity/certificates/trust-anchors';

export interface TestStores extends AsyncDisposable {
  readonly dataDir: string;
  readonly authority: Authority;
  readonly stores: Stores;
}

const SIGNALS = ['SIGINT', 'SIGTERM', 'SIGHUP'] as const;
const open = new Set<DisposalStack>();

/** Whoever is told to end takes the servers along, then ends as told. */
const end = async (signal: NodeJS.Signals): Promise<void> => {
  await Promise.allSettled([...open].map(owned => owned[Symbol.asyncDispose]()));
  for (const each of SIGNALS) process.off(each, end);
  process.kill(process.pid, signal);
};

/** A real Postgres and a real key-value store in a folder of their own, gone with the test. */
export async function openTestStores(options: { preferKeyValue?: 'wasm' | 'path' } = {}): Promise<TestStores> {
  const dataDir = mkdtempSync(join(tmpdir(), 'platform-test-'));
  const owned = new DisposalStack();
  if (open.size === 0) for (const signal of SIGNALS) process.on(signal, end);
  open.add(owned);
  owned.defer(() => {
    rmSync(dataDir, { recursive: true, force: true, maxRetries: 20, retryDelay: 100 });
    open.delete(owned);
    if (open.size === 0) for (const signal of SIGNALS) process.off(signal, end);
  });
  try {
    const authority = await openAuthority(dataDir);
    const stores = await openStores(owned, {
      dataDir,
      authority,
      databaseUrl: process.env['PLATFORM_TEST_DB_URL'],
      keyValueUrl: undefined,
      guarded: false,
      progress: () => undefined,
      ...options,
    });
    return { dataDir, authority, stores, [Symbol.asyncDispose]: () => owned[Symbol.asyncDispose]() };
  } catch (error) {
    await owned[Symbol.asyncDispose]();
    throw error;
  }
}

/** Kills the key-value store, with all that it had not written down, and ends when another one answers in its place. */
export async function loseKeyValue({ dataDir, stores }: TestStores): Promise<void> {
  const record = () => readRecord<ProcessRecord>(join(dataDir, 'run', 'kv.json'));
  const lost = record();
  if (lost === null) throw new Error('these stores have no key-value store of their own');
  process.kill(lost.pid, 'SIGKILL');
  const answers = async () => {
    const { pid } = record() ?? lost;
    if (pid === lost.pid) return false;
    const store = await connectKeyValue(stores.keyValueUrl).catch(() => undefined);
    await store?.close();
    return store !== undefined;
  };
  while (!(await answers())) await delay(10);
}
