import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Redis } from 'ioredis';
import { expect, test } from 'vitest';
import { startEmbeddedValkey } from './embedded-valkey.ts';
import { eventually } from '../fixtures/eventually.ts';
import { FreshReads } from '../fresh-reads.ts';
import { RestrictedLogins } from './restricted-logins.ts';

const answer = (client: Redis, command: string, ...args: string[]) =>
  client.call(command, ...args).then(
    () => 'done',
    (error: Error) => error.message.split(' ')[0],
  );

test('a login for code that is not ours reads versions, writes its own row and nothing else, and is there again after the store died', async () => {
  const dataDir = mkdtempSync(join(tmpdir(), 'platform-test-'));
  const store = await startEmbeddedValkey({ dataDir, prefer: 'wasm' });
  const logins = new RestrictedLogins(store.url);
  try {
    const client = new Redis(await logins.add('lending'), { maxRetriesPerRequest: 1, retryStrategy: () => 50 });
    client.on('error', () => undefined);
    expect(await answer(client, 'GET', 'authz:{x}')).toBe('done');
    expect(await new FreshReads(client).get(['authz:{x}', 'revoked:sub:x'])).toEqual([null, null]);
    expect(await answer(client, 'HSET', 'captain:svc:lending', 'a', 'b')).toBe('done');
    for (const [command, ...args] of [
      ['SET', 'authz:{x}', '1'],
      ['GET', 'bff:session:1'],
      ['MGET', 'authz:{x}', 'bff:session:1'],
      ['HSET', 'captain:svc:sys', 'a', 'b'],
      ['KEYS', '*'],
      ['FLUSHALL'],
      ['ACL', 'LIST'],
    ] as const) {
      expect([command, await answer(client, command, ...args)]).toEqual([command, 'NOPERM']);
    }
    process.kill(store.pid, 'SIGKILL');
    await eventually(() => answer(client, 'GET', 'authz:{x}')).toBe('done');
    client.disconnect();
  } finally {
    await logins[Symbol.asyncDispose]();
    await store.stop();
    rmSync(dataDir, { recursive: true, force: true });
  }
});
