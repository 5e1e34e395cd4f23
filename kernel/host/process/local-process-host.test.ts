import { spawn } from 'node:child_process';
import { createHash } from 'node:crypto';
import { once } from 'node:events';
import { type AddressInfo, createServer, type Socket } from 'node:net';
import { createServer as createTlsServer } from 'node:tls';
import { fileURLToPath } from 'node:url';
import type { ProcessId, ProcessNews } from '@platform/sdk';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { TestAuthority } from '../../storage/fixtures/test-authority.ts';
import { eventually } from '../../storage/fixtures/eventually.ts';
import type { KeyValue } from '../../storage/key-value.ts';
import { startedAt } from '../../storage/process-record.ts';
import { ProcessWorld, startReady } from '../fixtures/process-world.ts';
import { launchChild } from './child/child-launch.ts';
import { childEnvironment } from './child/child-environment.ts';
import type { LocalProcessHost } from './local-process-host.ts';

const GROUP_CHILD = fileURLToPath(new URL('../fixtures/group-child.ts', import.meta.url));
const CHANNEL_CHILD = fileURLToPath(new URL('../fixtures/channel-child.ts', import.meta.url));
let world: ProcessWorld;
let store: KeyValue;
let machine: LocalProcessHost;
let process1: ProcessId;
const heard: ProcessNews[] = [];
const port = 24_000 + (process.pid % 5_000);

beforeAll(async () => {
  world = await ProcessWorld.open();
  store = world.store;
  await world.vertical('tiny');
  machine = await world.host();
  process1 = await startReady(machine, 'tiny', port, heard);
});
afterAll(() => world?.[Symbol.asyncDispose]());

const rows = () => machine.instances.rows(['tiny']);

test('SUP-002 SUP-003 SUP-069 SUP-070 SUP-071 SUP-072 a service runs in a process group of its own, at the port it was given, and tells the registry', async () => {
  expect(process.kill(-process1.pid, 0)).toBe(true);
  expect(await store.client.hkeys('captain:svc:tiny')).toEqual([`127.0.0.1:${port}`]);
  expect(await rows()).toMatchObject([
    {
      service_type: 'tiny',
      ip: '127.0.0.1',
      port,
      pid: process1.pid,
      status: 'Starting',
      version: '1.0.0.test',
      started_at: expect.stringMatching(/Z$/),
      last_health_at: expect.stringMatching(/Z$/),
      metrics: { cpu_pct: expect.any(Number), mem_mb: expect.any(Number), latency_ms: expect.any(Number) },
      restarts: 0,
      api_calls: 0,
      failures: 0,
    },
  ]);
});

test('SUP-004 its health, its CPU time and its memory are seen from outside', async () => {
  expect(await machine.health('tiny', port, 2_000)).toMatchObject({ ok: true, latency_ms: expect.any(Number), active_connections: 0 });
  expect(machine.usage(process1)).toMatchObject({ cpu_ms: expect.any(Number), rss_bytes: expect.any(Number) });
  expect(machine.usage(process1)?.rss_bytes).toBeGreaterThan(10_000_000);
});

test('SUP-034 nothing that listens, a handshake that breaks off and a certificate that is refused are signs of warming up; silence is none', async () => {
  expect(await machine.health('tiny', port + 1, 2_000)).toMatchObject({ ok: false, warming: true });
  // One that hangs up, one that shows what no authority of ours signed, and one that says nothing.
  const sockets: Socket[] = [];
  const { cert, key } = await (await TestAuthority.create()).leaf('somebody else');
  const servers = [
    createServer(socket => void socket.destroy()),
    createTlsServer({ cert, key }),
    createServer(socket => void sockets.push(socket)),
  ];
  const looks: boolean[] = [];
  for (const server of servers) {
    await once(server.listen(0, '127.0.0.1'), 'listening');
    const look = await machine.health('tiny', (server.address() as AddressInfo).port, 300);
    looks.push('warming' in look && look.warming);
  }
  expect(looks).toEqual([true, true, false]);
  for (const socket of sockets) socket.destroy();
  for (const server of servers) server.close();
});

test('SUP-003 SUP-075 what the supervisor has seen of an instance stands beside what the process says of itself, and routers hear of it', async () => {
  const told: string[] = [];
  const subscriber = await store.duplicate();
  await subscriber.subscribe('captain:changed');
  subscriber.on('message', (_, message: string) => void told.push(message));
  await machine.instances.write({ service_type: 'tiny', ip: '127.0.0.1', port, status: 'Active', restarts: 2 }, true);
  expect(await rows()).toMatchObject([{ pid: process1.pid, status: 'Active', restarts: 2 }]);
  await eventually(() => told.map(message => JSON.parse(message) as object)).toMatchObject([
    { service_type: 'tiny', instance: `127.0.0.1:${port}`, status: 'Active' },
  ]);
  subscriber.disconnect();
});

test('SUP-064 the enrollment record of the machine stands under its address for 120 seconds, and has the secret as a hash alone', async () => {
  await machine.publishEnrollment(['tiny'], Buffer.alloc(32, 7));
  const key = 'captain:enrollment:127.0.0.1';
  const record = JSON.parse(String(await store.client.get(key))) as Record<string, unknown>;
  const secret = Buffer.alloc(32, 7).toString('base64url');
  expect(record).toEqual({
    sha256: createHash('sha256').update(secret).digest('hex'),
    services: ['tiny'],
    ip: '127.0.0.1',
    generated_at: expect.any(String),
  });
  const left = await store.client.ttl(key);
  expect([left > 110, left <= 120]).toEqual([true, true]);
});

test('a host that comes after it finds the process by pid and start time, and knows one that was told other things', async () => {
  const next = await world.host();
  expect(next.survivors()).toEqual([{ ...process1, service_type: 'tiny', port, release: '', build: 'test', outdated: false }]);
  expect((await world.host({ told: 'other addresses' })).survivors()).toMatchObject([{ pid: process1.pid, outdated: true }]);
  expect(next.isAlive({ ...process1, started: 'another time' })).toBe(false);
});

test('F-02 F-04 a process behind walls lives on when its channel to the host ends', async () => {
  const child = spawn(process.execPath, ['--permission', '--allow-fs-read=*', CHANNEL_CHILD], {
    stdio: ['ignore', 'pipe', 'inherit', 'ipc'],
  });
  let said = '';
  child.stdout?.on('data', (chunk: Buffer) => (said += chunk.toString()));
  await once(child, 'message');
  child.disconnect();
  await eventually(() => said).toContain('still here');
  child.kill('SIGKILL');
});

test('what a service has started itself is seen, and ends with it, however it ends and whatever they do', async () => {
  const { dataDir } = world.stores;
  const ended = Promise.withResolvers<void>();
  const id = launchChild(
    {
      manifest: { id: 'group', vertical: 'platform', placement: { tier: 50 }, keys: {} } as never,
      directory: dataDir,
      main: GROUP_CHILD,
      told: {} as never,
      dataDir,
      home: dataDir,
      environment: {},
      sockets: [],
      silentMs: 60_000,
      log: undefined as never,
    },
    { begun: () => undefined, news: () => undefined, ended: () => ended.resolve() },
  );
  await eventually(() => machine.companions(id)).toMatchObject([{ cpu_ms: expect.any(Number), rss_bytes: expect.any(Number) }]);
  const [worker] = machine.companions(id);
  // Of itself alone, as the system does it that has no more memory.
  process.kill(id.pid, 'SIGKILL');
  await ended.promise;
  await eventually(() => startedAt(worker?.pid ?? 0)).toBeNull();
  expect(machine.companions({ pid: process.pid })).toEqual([]);
});

test('F-15 one that is killed is known to have ended, and its note is gone', async () => {
  expect(machine.signal({ ...process1, started: 'another time' }, 'SIGKILL')).toBe(false);
  expect(machine.signal(process1, 'SIGKILL')).toBe(true);
  await eventually(() => heard.at(-1)).toEqual({ type: 'exited', reason: 'ended (SIGKILL)' });
  expect([startedAt(process1.pid), machine.survivors()]).toEqual([null, []]);
});

test('F-02 what still runs ends with the host', async () => {
  const make = await machine.prepare({ service_type: 'tiny', port });
  const { pid } = make(() => undefined);
  await machine[Symbol.asyncDispose]();
  expect(startedAt(pid)).toBeNull();
});

test.each([
  ['at import', 'torn', { contract: "throw new Error('torn apart')" }, 'torn failed to load: torn apart'],
  ['at its set-up', 'toolless', { setup: "throw new Error('no tools')" }, 'toolless failed to set up: no tools'],
])('a service that throws %s is told of by the parent with its name and its reason, and nothing of it stays', async (_, id, how, said) => {
  await world.vertical(id, how);
  const host = await world.host();
  const started = startReady(host, id, port + 2).then(
    () => 'it started',
    (error: Error) => error.message,
  );
  expect(await started).toBe(said);
  await eventually(() => host.survivors().filter(({ service_type }) => service_type === id)).toEqual([]);
  expect(await host.health(id, port + 2, 2_000)).toMatchObject({ ok: false, warming: true });
});

test('SUP-067 it signals neither itself nor a process that took the number of another', async () => {
  expect(machine.signal({ pid: process.pid, started: startedAt(process.pid) as string }, 'SIGTERM')).toBe(false);
  const other = spawn(process.execPath, ['-e', 'setInterval(() => {}, 1000)'], { detached: true });
  expect(machine.signal({ pid: other.pid as number, started: 'earlier' }, 'SIGKILL')).toBe(false);
  other.kill('SIGKILL');
  await once(other, 'exit');
});

test('SUP-068 a child inherits what its contract names, never a path to a key of the authority', () => {
  const manifest = {
    id: 'tiny',
    vertical: 'platform',
    keys: {},
    config: { properties: { a: { env: 'PLATFORM_TINY_A' }, b: { env: 'PLATFORM_TINY_B' } } },
  } as never;
  const environment = {
    PATH: '/bin',
    PLATFORM_DOMAIN: 'x',
    PLATFORM_TINY_A: 'env://TINY_SECRET',
    PLATFORM_TINY_B: '/data/ca/pq/root.key',
    TINY_SECRET: 's',
    PLATFORM_ACME_CA_KEY: '/k',
    PLATFORM_OTHER: 'y',
    AWS_SECRET_ACCESS_KEY: 'z',
  };
  const inherited = { PATH: '/bin', PLATFORM_DOMAIN: 'x', PLATFORM_TINY_A: 'env://TINY_SECRET', TINY_SECRET: 's' };
  expect(childEnvironment(manifest, environment, { dataDir: '/data' })).toEqual(inherited);
  // What the operator's catalog allows comes besides; of the authority's keys nothing does, whoever allows it.
  const allowed = ['PLATFORM_OTHER', 'PLATFORM_ACME_CA_KEY', 'PLATFORM_TINY_B', 'NOT_SET'];
  expect(childEnvironment(manifest, environment, { dataDir: '/data', allowed })).toEqual({ ...inherited, PLATFORM_OTHER: 'y' });
});
