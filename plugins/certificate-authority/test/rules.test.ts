import { createHash } from 'node:crypto';
import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { KeyValue } from '@platform/sdk';
import { describe, expect, onTestFinished, test, vi } from 'vitest';
import { openAuthority } from '@platform/testing';
import { Enrollment } from '../src/issuance/enrollment.ts';
import { Issuance } from '../src/issuance/issuance.ts';
import { Mint } from '../src/issuance/mint.ts';
import { MAX_CONCURRENT_MINTS, MAX_QUEUED_MINTS, MintQueue, MintQueueFull } from '../src/issuance/mint-queue.ts';
import { PlatformNames } from '../src/issuance/platform-names.ts';
import { isLocalName, parseSuffixes } from '../src/issuance/name-classification.ts';

const settled = () => new Promise(resolve => setImmediate(resolve));

describe('the mint queue', () => {
  test('CA-036 CA-037 sixteen at work, thirty-two waiting, the next is sent away at once; places are handed on', async () => {
    expect([MAX_CONCURRENT_MINTS, MAX_QUEUED_MINTS]).toEqual([16, 32]);
    const queue = new MintQueue();
    const open: (() => void)[] = [];
    let most = 0;
    let running = 0;
    const work = async () => {
      running += 1;
      most = Math.max(most, running);
      await new Promise<void>(resolve => open.push(resolve));
      running -= 1;
    };
    const runs = Array.from({ length: 48 }, () => queue.run(work));
    await settled();
    expect(running).toBe(16);
    await expect(queue.run(work)).rejects.toMatchObject({ queued: 32, inFlight: 16 });
    await expect(queue.run(work)).rejects.toBeInstanceOf(MintQueueFull);
    while (open.length > 0) {
      open.splice(0).forEach(done => done());
      await settled();
    }
    await Promise.all(runs);
    expect([most, running]).toEqual([16, 0]);
  });

  test('CA-037 a mint that fails gives its place back', async () => {
    const queue = new MintQueue();
    const failed = await Promise.allSettled(Array.from({ length: 40 }, () => queue.run(async () => Promise.reject(new Error('no')))));
    expect(new Set(failed.map(({ status }) => status))).toEqual(new Set(['rejected']));
    expect(await queue.run(async () => 'made')).toBe('made');
  });

  test('CA-035 CA-036 CA-038 client and listener certificates share it; who is shed gets 503, Retry-After: 30, and a line in the log', async () => {
    const gate = Promise.withResolvers<never>();
    const lines: object[] = [];
    const context = {
      config: { localDomains: '', leafDays: 90 },
      platform: { domain: 'localhost' },
      auth: { verify: async () => ({ caller: { kind: 'machine', subject: 'func' }, permits: async () => false }) },
      catalog: { manifests: () => [] },
      log: { warn: (line: object) => lines.push(line) },
      clock: { now: () => new Date() },
      authority: {
        issue: () => gate.promise,
        anchors: { pq: { intermediate: '' }, classical: { intermediate: '' } },
        readCsr: async () => ({ hierarchy: 'pq', commonName: 'x', names: [] }),
      },
      problem: (code: string, more: object) => Object.assign(new Error(code), more),
    };
    const issuance = new Issuance(context as never, {} as never, {} as never);
    const mint = new Mint(context as never, { issuance, names: new PlatformNames('localhost', () => []), suffixes: [] } as never);
    const request = (body: object) => ({ body, headers: {}, peer: { workload: 'func' }, ip: '127.0.0.1', correlationId: 'c' }) as never;
    const waiting = Array.from({ length: 48 }, () => mint.clientCertificate(request({ service_name: 'func' })));
    await settled();
    const shed = { message: 'mint_queue_full', headers: { 'retry-after': '30' } };
    await expect(mint.clientCertificate(request({ service_name: 'func' }))).rejects.toMatchObject(shed);
    await expect(mint.listenerCertificate(request({ domain: 'func.ops.sys.localhost', csr: 'x' }))).rejects.toMatchObject(shed);
    expect(lines).toEqual([1, 2].map(() => expect.objectContaining({ event: 'mint_shed', queued: 32, in_flight: 16 })));
    gate.reject(new Error('over'));
    await Promise.allSettled(waiting);
  });
});

test('G-ACME-09 nobody waits longer than a minute for a place', async () => {
  vi.useFakeTimers();
  onTestFinished(() => void vi.useRealTimers());
  const queue = new MintQueue();
  const gate = Promise.withResolvers<void>();
  const running = Array.from({ length: 16 }, () => queue.run(() => gate.promise));
  const late = expect(queue.run(async () => 'made')).rejects.toBeInstanceOf(MintQueueFull);
  await vi.advanceTimersByTimeAsync(60_000);
  await late;
  expect(queue.figures).toMatchObject({ in_flight: 16, queued: 0, shed: 1 });
  gate.resolve();
  await Promise.all(running);
  expect(await queue.run(async () => 'made')).toBe('made');
});

describe('which names the platform signs itself', () => {
  const suffixes = parseSuffixes(' .lan, Corp.Example. ,, ');
  test.each([
    ['localhost', true],
    ['LOCALHOST', true],
    ['localhost.', true],
    ['a.localhost', true],
    ['*.localhost', true],
    ['notlocalhost', false],
    ['localhost.example.org', false],
    ['printer.local', true],
    ['local', false],
    ['printer.local.example.org', false],
    ['*.local', false],
    ['127.0.0.1', true],
    ['127.255.0.9', true],
    ['10.1.2.3', true],
    ['192.168.0.1', true],
    ['172.16.0.1', true],
    ['172.31.255.255', true],
    ['::1', true],
    ['172.15.0.1', false],
    ['172.32.0.1', false],
    ['192.169.0.1', false],
    ['11.0.0.1', false],
    ['10.example.org', false],
    ['::2', false],
    ['lan', true],
    ['nas.lan', true],
    ['*.lan', true],
    ['xlan', false],
    ['corp.example', true],
    ['a.b.corp.example', true],
    ['mycorp.example', false],
    ['example.org', false],
    ['*.example.org', false],
    ['', false],
  ])('CA-010 CA-011 CA-012 CA-013 CA-014 %s: %s', (name, local) => {
    expect(isLocalName(name, suffixes)).toBe(local);
  });

  test('CA-013 the setting is read leniently', () => {
    expect(suffixes).toEqual(['lan', 'corp.example']);
    expect(parseSuffixes('')).toEqual([]);
  });
});

test.each(['root.key', 'classical/root.key', 'intermediate.key'])(
  'G-ACME-01 a missing %s beside a root certificate stops the boot, and nothing is made anew',
  async name => {
    const dataDir = mkdtempSync(join(tmpdir(), 'platform-anchors-'));
    try {
      await openAuthority(dataDir);
      const path = join(dataDir, 'ca', name);
      const root = readFileSync(join(dataDir, 'ca', 'root.crt'), 'utf8');
      rmSync(path);
      await expect(openAuthority(dataDir)).rejects.toThrow(path);
      expect([existsSync(path), readFileSync(join(dataDir, 'ca', 'root.crt'), 'utf8')]).toEqual([false, root]);
    } finally {
      rmSync(dataDir, { recursive: true, force: true });
    }
  },
);

/** On a machine that has sealed no secret of its own. */
const enrollmentOver = (kv: KeyValue, log: object): Enrollment =>
  new Enrollment({
    kv,
    log,
    clock: { now: () => new Date() },
    platform: { dataDir: '/nonexistent', ip: '127.0.0.1' },
    catalog: { manifests: () => [] },
  } as never);

test('F-29 an ordinary enrollment is a line of information; one that is refused is a warning', async () => {
  const [secret, lines] = ['s'.repeat(43), [] as string[]];
  const record = JSON.stringify({ sha256: createHash('sha256').update(secret).digest('hex'), workload: 'bus' });
  const kv = { call: async () => record, pipeline: async () => [1, 1] } as unknown as KeyValue;
  const line = (level: string) => () => void lines.push(level);
  const enrollment = enrollmentOver(kv, { debug: line('debug'), info: line('info'), warn: line('warn'), error: line('error') });
  expect([await enrollment.admits(secret, 'bus', '127.0.0.1'), await enrollment.admits('t'.repeat(43), 'bus', '127.0.0.1'), lines]).toEqual(
    [true, false, ['info', 'warn']],
  );
});

test('H-03 a machine’s secret is good at its address and for the services its record names, and for nothing else', async () => {
  const secret = 'of-the-machine';
  const record = JSON.stringify({
    sha256: createHash('sha256').update(secret).digest('hex'),
    ip: '10.0.0.2',
    services: ['host', 'captain', 'stat'],
  });
  const kv = {
    call: async (_: string, key: string) => (key === 'captain:enrollment:10.0.0.2' ? record : null),
    pipeline: async () => [1],
  } as never;
  const quiet = { debug: () => undefined, info: () => undefined, warn: () => undefined, error: () => undefined };
  const admits = (given: string, workload: string, ip: string) => enrollmentOver(kv, quiet).admits(given, workload, ip);
  expect([
    await admits(secret, 'captain', '10.0.0.2'),
    await admits(secret, 'captain-remote', '10.0.0.2'),
    await admits(secret, 'stat', '10.0.0.2'),
    await admits(secret, 'acme', '10.0.0.2'),
    await admits(secret, 'captain', '10.0.0.3'),
    await admits('another', 'captain', '10.0.0.2'),
  ]).toEqual([true, true, true, false, false, false]);
});
