import { isUnavailable } from '@platform/sdk';
import { type ChildProcess, spawn } from 'node:child_process';
import { existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync } from 'node:fs';
import { connect, type Socket } from 'node:net';
import { once } from 'node:events';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest';
import { eventually } from '../fixtures/eventually.ts';
import { type EmbeddedValkey, startEmbeddedValkey } from './embedded-valkey.ts';
import { killedLauncher } from '../fixtures/killed-launcher.ts';
import { connectKeyValue, type KeyValue } from '../key-value.ts';
import { isAlive, recordOf } from '../process-record.ts';

vi.setConfig({ testTimeout: 30_000, hookTimeout: 60_000 });

const LAUNCHER = fileURLToPath(new URL('../fixtures/ground-launcher.ts', import.meta.url));
const newDirectory = (): string => mkdtempSync(join(tmpdir(), 'platform-test-'));

describe('one server', () => {
  let dataDir: string;
  let valkey: EmbeddedValkey;
  let store: KeyValue;
  beforeAll(async () => {
    dataDir = newDirectory();
    valkey = await startEmbeddedValkey({ dataDir, prefer: 'wasm' });
    store = await connectKeyValue(valkey.url);
  });
  afterAll(async () => {
    await store.close();
    await valkey.stop();
    rmSync(dataDir, { recursive: true });
  });

  test('no command is served without the password, and a wrong one is refused', async () => {
    const port = Number(new URL(valkey.url).port);
    expect(await say(port, 'PING')).toMatch(/^-NOAUTH/);
    expect(await say(port, 'INFO')).toMatch(/^-NOAUTH/);
    expect(await say(port, 'SHUTDOWN')).toMatch(/^-NOAUTH/);
    await expect(connectKeyValue(`redis://:${'x'.repeat(43)}@127.0.0.1:${port}`)).rejects.toThrow(/WRONGPASS|closed/);
    expect(await store.client.ping()).toBe('PONG');
  });

  test('the password is in a private file, and in no list of processes and no environment', () => {
    const file = join(dataDir, 'keys', 'kv.password');
    const password = new URL(valkey.url).password;
    expect(statSync(file).mode & 0o777).toBe(0o600);
    expect(readFileSync(file, 'utf8')).toBe(password);
    for (const place of ['cmdline', 'environ']) expect(readFileSync(`/proc/${valkey.pid}/${place}`, 'utf8')).not.toContain(password);
  });

  test('more connections are served in a lifetime than the server has descriptors: 8,000', async () => {
    const port = Number(new URL(valkey.url).port);
    for (let done = 0; done < 8_000; done += 100) {
      const answers = await Promise.all(Array.from({ length: 100 }, () => say(port, 'PING')));
      expect(new Set(answers.map(answer => answer.slice(0, 7)))).toEqual(new Set(['-NOAUTH']));
    }
    expect(await store.client.ping()).toBe('PONG');
  });

  test('thousands of pipelined commands and values of megabytes come back whole', async () => {
    const pipeline = store.client.pipeline();
    for (let i = 0; i < 5_000; i++) pipeline.xadd('stream', '*', 'n', i);
    expect((await pipeline.exec())?.every(([error]) => error === null)).toBe(true);
    expect(await store.client.xlen('stream')).toBe(5_000);
    const value = 'v'.repeat(8 * 1024 * 1024);
    await store.client.set('large', value);
    expect(await Promise.all(Array.from({ length: 6 }, () => store.client.get('large').then(text => text === value)))).toEqual(
      Array(6).fill(true),
    );
    await store.client.del('large');
  });

  test('a blocked reader gets what is written, on a connection of its own', async () => {
    await store.client.xgroup('CREATE', 'jobs', 'workers', '$', 'MKSTREAM');
    const reader = await store.duplicate();
    const read = reader.xreadgroup('GROUP', 'workers', 'me', 'COUNT', 10, 'BLOCK', 10_000, 'STREAMS', 'jobs', '>');
    await store.client.xadd('jobs', '*', 'a', '1');
    expect(await read).toMatchObject([['jobs', [[expect.any(String), ['a', '1']]]]]);
    reader.disconnect();
  });

  test('scripts run', async () => {
    expect(await store.client.eval('return redis.call("incrby", KEYS[1], ARGV[1])', 1, 'counter', 5)).toBe(5);
  });

  test('killed, it is restarted at the same address, and clients find it again', async () => {
    const [pid, url] = [valkey.pid, valkey.url];
    process.kill(pid, 'SIGKILL');
    await eventually(() => store.healthy()).toBe(false);
    await eventually(() => store.healthy()).toBe(true);
    expect(valkey.url).toBe(url);
    expect(valkey.pid).not.toBe(pid);
    expect(valkey.restarts).toBe(1);
  });
});

describe('a killed server', () => {
  const kept = (dataDir: string) => {
    const home = join(dataDir, 'kv', 'wasm');
    return readdirSync(home)
      .filter(name => name.startsWith('journal.'))
      .map(name => readFileSync(join(home, name), 'latin1'))
      .join('');
  };

  test('F-10 has lost nothing of what had reached its journal: keys, lives, groups, scripts and transactions, killed twice', async () => {
    const dataDir = newDirectory();
    const valkey = await startEmbeddedValkey({ dataDir, prefer: 'wasm' });
    const store = await connectKeyValue(valkey.url);
    const { client } = store;
    const killed = async (mark: string) => {
      await client.set('mark', mark);
      await eventually(() => kept(dataDir)).toContain(mark);
      const restarts = valkey.restarts;
      process.kill(valkey.pid, 'SIGKILL');
      await eventually(() => valkey.restarts).toBe(restarts + 1);
      await eventually(() => store.healthy()).toBe(true);
    };
    const state = async () => [
      await client.get('counter'),
      await client.hgetall('session'),
      (await client.pttl('session')) > 3_000_000,
      await client.xlen('stream'),
      ((await client.xpending('stream', 'group')) as unknown[])[0],
      await client.zrange('due', '0', '-1', 'WITHSCORES'),
      await client.lrange('list', 0, -1),
      await client.get('scripted'),
      await client.exists('gone'),
    ];
    try {
      await client.xgroup('CREATE', 'stream', 'group', '0', 'MKSTREAM');
      for (let n = 0; n < 300; n++) await client.xadd('stream', '*', 'n', n);
      await client.xreadgroup('GROUP', 'group', 'me', 'COUNT', 10, 'STREAMS', 'stream', '>');
      await client.multi().incrby('counter', 2).hset('session', 'of', 'ada').pexpire('session', 3_600_000).exec();
      await client.eval(
        "redis.call('set', KEYS[1], redis.call('incr', KEYS[2])) redis.call('set', KEYS[3], 1)",
        3,
        'scripted',
        'counter',
        'gone',
      );
      await client.zadd('due', '5', 'five', '3', 'three');
      await client.rpush('list', 'a', 'b');
      await client.lpop('list');
      await client.del('gone');
      const before = await state();
      await killed('first-mark');
      expect(await state()).toEqual(before);
      // What came back from a journal is in the snapshot now, and counted once.
      await client.incr('counter');
      await killed('second-mark');
      expect(await state()).toEqual(['4', ...before.slice(1)]);
      expect(kept(dataDir)).not.toContain('second-mark');
    } finally {
      await store.close();
      await valkey.stop();
      rmSync(dataDir, { recursive: true });
    }
  });
});

test('data survive a stop, which saves, and nobody gets in without the password afterwards', async () => {
  const dataDir = newDirectory();
  const first = await startEmbeddedValkey({ dataDir, prefer: 'wasm' });
  const record = recordOf(first.pid);
  const writer = await connectKeyValue(first.url);
  await writer.client.set('kept', 'yes');
  await writer.close();
  await first.stop();
  expect(isAlive(record)).toBe(false);

  const second = await startEmbeddedValkey({ dataDir, prefer: 'wasm' });
  expect(new URL(second.url).password).toBe(new URL(first.url).password);
  expect(await say(Number(new URL(second.url).port), 'GET', 'kept')).toMatch(/^-NOAUTH/);
  const reader = await connectKeyValue(second.url);
  expect(await reader.client.get('kept')).toBe('yes');
  await reader.close();
  await second.stop();
  rmSync(dataDir, { recursive: true });
});

test('what a killed host left running is adopted with its data, watched, and ends with stop', async () => {
  const dataDir = newDirectory();
  const pid = await killedLauncher(dataDir, 'valkey');
  const left = recordOf(pid);
  expect(isAlive(left)).toBe(true);
  const adopted = await startEmbeddedValkey({ dataDir, prefer: 'wasm' });
  expect(adopted.pid).toBe(pid);
  process.kill(pid, 'SIGKILL');
  await eventually(() => adopted.restarts).toBe(1);
  await adopted.stop();
  expect(isAlive(left)).toBe(false);
  expect(adopted.pid === pid || !isAlive(recordOf(adopted.pid))).toBe(true);
  rmSync(dataDir, { recursive: true });
});

test('a server whose start is not noted down does not live on', async () => {
  const dataDir = newDirectory();
  // A folder stands where the note is written.
  mkdirSync(join(dataDir, 'run', 'kv.json.new'), { recursive: true });
  await expect(startEmbeddedValkey({ dataDir, prefer: 'wasm' })).rejects.toThrow(/EISDIR/);
  expect(commandsOn(dataDir)).toEqual([]);
  rmSync(dataDir, { recursive: true });
});

test.each(['SIGTERM', 'SIGKILL'] as const)('a test file that is ended by %s takes its servers along', async signal => {
  const { process: file, dataDir } = await testFile();
  const record = recordOf(Number(JSON.parse(readFileSync(join(dataDir, 'run', 'kv.json'), 'utf8')).pid));
  expect(isAlive(record)).toBe(true);
  file.kill(signal);
  expect(await once(file, 'exit')).toEqual([null, signal]);
  await eventually(() => isAlive(record)).toBe(false);
  await eventually(() => existsSync(dataDir)).toBe(false);
});

test('a store that is away fails at once and recognisably', async () => {
  const dataDir = newDirectory();
  const valkey = await startEmbeddedValkey({ dataDir, prefer: 'wasm' });
  const store = await connectKeyValue(valkey.url);
  await valkey.stop();
  await eventually(() => store.client.status).not.toBe('ready');
  const error: unknown = await store.client.get('x').catch((failure: unknown) => failure);
  expect(isUnavailable(error)).toBe(true);
  expect(await store.healthy()).toBe(false);
  await store.close();
  rmSync(dataDir, { recursive: true });
});

/** Command lines of processes that were started on a data directory. */
function commandsOn(dataDir: string): string[] {
  const pids = readdirSync('/proc').filter(name => /^\d+$/.test(name));
  const commands = pids.map(pid => {
    try {
      return readFileSync(`/proc/${pid}/cmdline`, 'latin1').replaceAll('\0', ' ');
    } catch {
      return '';
    }
  });
  return commands.filter(command => command.includes(dataDir));
}

/** A process that stands on a ground of its own and has a server on it. */
async function testFile(): Promise<{ process: ChildProcess; dataDir: string }> {
  const file = spawn(process.execPath, ['--disable-warning=ExperimentalWarning', LAUNCHER], { stdio: ['ignore', 'pipe', 'ignore'] });
  const [dataDir] = (await once(createInterface(file.stdout), 'line')) as [string];
  return { process: file, dataDir };
}

/** One command on a new connection that does not log in. */
async function say(port: number, ...words: string[]): Promise<string> {
  const socket: Socket = connect(port, '127.0.0.1');
  socket.write(`${words.join(' ')}\r\n`);
  const [answer] = (await once(socket, 'data')) as [Buffer];
  socket.destroy();
  return answer.toString();
}
