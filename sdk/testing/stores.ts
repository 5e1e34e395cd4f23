import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { DisposalStack } from '@platform/kernel/base/disposal-stack';
import { openStores, type Stores } from '@platform/kernel/host/stores';
import { type Authority, openAuthority } from '@platform/kernel/identity/trust-anchors';

export interface TestStores extends AsyncDisposable {
  readonly dataDir: string;
  readonly authority: Authority;
  readonly stores: Stores;
}

/** A real Postgres and a real key-value store in a folder of their own, gone with the test. */
export async function openTestStores(options: { preferKeyValue?: 'wasm' | 'path' } = {}): Promise<TestStores> {
  const dataDir = mkdtempSync(join(tmpdir(), 'platform-test-'));
  const owned = new DisposalStack();
  owned.defer(() => rmSync(dataDir, { recursive: true, force: true }));
  try {
    const authority = await openAuthority(dataDir);
    const stores = await openStores(owned, { dataDir, authority, databaseUrl: process.env['PLATFORM_TEST_DB_URL'], keyValueUrl: undefined, guarded: false, progress: () => undefined, ...options });
    return { dataDir, authority, stores, [Symbol.asyncDispose]: () => owned[Symbol.asyncDispose]() };
  } catch (error) {
    await owned[Symbol.asyncDispose]();
    throw error;
  }
}
