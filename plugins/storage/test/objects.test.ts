import { createHash, randomBytes } from 'node:crypto';
import { existsSync, readdirSync, rmSync, utimesSync, writeFileSync } from 'node:fs';
import { type FileHandle, open as openFile } from 'node:fs/promises';
import { join } from 'node:path';
import { as, boot, type BootedHost, openTestStores, type Persona, type TestStores } from '@platform/testing';
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest';
import type { storage } from '../contract/index.ts';
import plugin from '../src/plugin.ts';
import command from '../src/upkeep/storage-command.ts';
import { fauxqs, s3rver, type TestBucket } from './fixtures/npm-buckets.ts';
import { REGION, StrictBucket } from './fixtures/strict-bucket.ts';

const SCOPES = ['storage:objects:read', 'storage:objects:write'];
const func = as.machine('func', ...SCOPES);
const app = as.machine('app', ...SCOPES);
const admin = as.user('storage:read', 'sys:sys:admin');
const sha = (bytes: Buffer) => createHash('sha256').update(bytes).digest('hex');

let stores: TestStores;
/** The storage’s own files, seen as a bucket is. */
const keptFiles = async (): Promise<TestBucket> => {
  const at = (name: string) => {
    const id = name.slice(-36);
    return join(stores.dataDir, 'files', 'storage', 'blobs', id.slice(-2), id);
  };
  return {
    origin: '',
    key: { id: '', secret: '' },
    has: async name => existsSync(at(name)),
    lay: async (name, body, when) => {
      writeFileSync(at(name), body);
      utimesSync(at(name), when, when);
    },
    take: async name => rmSync(at(name)),
    [Symbol.asyncDispose]: async () => undefined,
  };
};
beforeAll(async () => {
  stores = await openTestStores();
});
afterAll(() => stores?.[Symbol.asyncDispose]());

// The servers of npm take any put, whatever its conditions; the strict one of these tests does not.
describe.each(['files', 'strict', 's3rver', 'fauxqs'] as const)('objects in %s', backend => {
  let host: BootedHost<typeof storage>;
  let bucket: TestBucket;
  beforeAll(async () => {
    bucket = await { files: keptFiles, strict: StrictBucket.start, s3rver, fauxqs }[backend]();
    process.env['STORAGE_TEST_KEY'] = `${bucket.key.id}:${bucket.key.secret}`;
    const s3 = {
      PLATFORM_STORAGE_URL: `${bucket.origin}/things/kept/here?region=${REGION}`,
      PLATFORM_STORAGE_CREDENTIALS_REF: 'env://STORAGE_TEST_KEY',
    };
    host = await boot(plugin, { stores, environment: backend === 'files' ? {} : s3 });
  });
  afterAll(async () => {
    await host?.[Symbol.asyncDispose]();
    await bucket?.[Symbol.asyncDispose]();
  });
  const at = (name: string) => `/v1/objects/func/${backend}/${name}`;
  const put = (path: string, body: Buffer, headers: Record<string, string> = {}, persona: Persona = func) =>
    host.fetch(path, { method: 'PUT', persona, body, headers });
  const get = (path: string, headers: Record<string, string> = {}, persona: Persona = func) =>
    host.fetch(path, { method: 'GET', persona, headers });

  test('STO-002 a module is stored, served with its hash, and removed, by the function service’s own identity', async () => {
    const body = randomBytes(3_000_000);
    const made = await put(at('01.wasm'), body, {
      'x-content-sha256': sha(body),
      'content-type': 'application/wasm',
      'if-none-match': '*',
    });
    expect([made.status, made.json]).toEqual([201, { key: `func/${backend}/01.wasm`, size: body.length, sha256: sha(body) }]);
    const read = await get(at('01.wasm'));
    expect([
      read.status,
      read.body.equals(body),
      read.headers['content-type'],
      read.headers['x-content-sha256'],
      read.headers['etag'],
    ]).toEqual([200, true, 'application/wasm', sha(body), `"${sha(body)}"`]);
    const head = await host.fetch(at('01.wasm'), { method: 'HEAD', persona: func });
    expect([head.status, head.headers['content-length'], head.body.length]).toEqual([200, '3000000', 0]);
    expect((await host.fetch(at('01.wasm'), { method: 'DELETE', persona: func })).status).toBe(204);
    expect((await get(at('01.wasm'))).json['code']).toBe('object_not_found');
    // Idempotent (G-STO-01).
    expect((await host.fetch(at('01.wasm'), { method: 'DELETE', persona: func })).status).toBe(204);
  });

  test('STO-001 listing media lie under app/{listing_id}/{role}.{ext}, and no other service reaches them', async () => {
    const path = `/v1/objects/app/${backend}-01900000/icon.png`;
    expect((await put(path, Buffer.from('png'), { 'content-type': 'image/png' }, app)).status).toBe(201);
    expect((await get(path, {}, app)).body.toString()).toBe('png');
    for (const persona of [func, as.machine('appx', ...SCOPES), { ...as.machine('app', ...SCOPES), vertical: 'acme' }])
      expect((await get(path, {}, persona)).json['code']).toBe('key_denied');
    expect((await put(path, Buffer.from('evil'), {}, func)).json['code']).toBe('key_denied');
    expect((await host.fetch(path, { method: 'DELETE', persona: func })).json['code']).toBe('key_denied');
    expect((await put(path, Buffer.from('no'), {}, as.machine('app', 'storage:objects:read'))).json['code']).toBe('key_denied');
    expect((await get(path, {}, as.user(...SCOPES))).status).toBe(403);
    const lender = { ...as.machine('lending', ...SCOPES), vertical: 'acme' };
    const own = `/v1/objects/v/acme/lending/${lender.envId}/${backend}.txt?target_env_id=${lender.envId}`;
    expect((await put(own, Buffer.from('a'), {}, lender)).status).toBe(201);
    expect((await get(own.replace(lender.envId, '01900000-0000-7000-8000-0000000000aa'), {}, lender)).json['code']).toBe('key_denied');
  });

  test('a put takes effect only when what is there is what the request names, whoever races', async () => {
    const one = await put(at('if'), Buffer.from('one'), { 'if-none-match': '*' });
    expect((await put(at('if'), Buffer.from('two'), { 'if-none-match': '*' })).json['code']).toBe('precondition_failed');
    const tag = String(one.headers['etag']);
    const races = await Promise.all(Array.from({ length: 8 }, (_, n) => put(at('if'), Buffer.from(`race ${n}`), { 'if-match': tag })));
    expect(races.map(({ status }) => status).sort()).toEqual([200, 412, 412, 412, 412, 412, 412, 412]);
    const created = await Promise.all(
      Array.from({ length: 8 }, (_, n) => put(at('new'), Buffer.from(`race ${n}`), { 'if-none-match': '*' })),
    );
    expect(created.map(({ status }) => status).sort()).toEqual([201, 412, 412, 412, 412, 412, 412, 412]);
    const now = await get(at('if'));
    expect((await get(at('if'), { 'if-none-match': `"x", W/${String(now.headers['etag'])}` })).status).toBe(304);
    expect((await host.fetch(at('if'), { method: 'DELETE', persona: func, headers: { 'if-match': tag } })).json['code']).toBe(
      'precondition_failed',
    );
    expect((await put(at('absent'), Buffer.from('x'), { 'if-match': '*' })).json['code']).toBe('precondition_failed');
  });

  test('ranges answer the bytes that are named, and 416 what there is', async () => {
    await put(at('range'), Buffer.from('0123456789'));
    const part = async (range: string, more: Record<string, string> = {}) => {
      const { status, body, headers } = await get(at('range'), { range, ...more });
      return [status, body.toString(), headers['content-range']];
    };
    expect(await part('bytes=2-4')).toEqual([206, '234', 'bytes 2-4/10']);
    expect(await part('bytes=7-')).toEqual([206, '789', 'bytes 7-9/10']);
    expect(await part('bytes=-3')).toEqual([206, '789', 'bytes 7-9/10']);
    expect(await part('bytes=0-0,2-3')).toEqual([200, '0123456789', undefined]);
    expect(await part('bytes=2-4', { 'if-range': '"another"' })).toEqual([200, '0123456789', undefined]);
    expect((await part('bytes=10-'))[0]).toBe(416);
    // fauxqs answers 500 to a put without a byte.
    if (backend === 'fauxqs') return;
    expect((await put(at('empty'), Buffer.alloc(0))).status).toBe(201);
    expect(await get(at('empty'))).toMatchObject({ status: 200, body: Buffer.alloc(0) });
  });

  test('bytes that are not those that were named, too many of them and keys that lead elsewhere are refused, and nothing is stored', async () => {
    expect((await put(at('bad'), Buffer.from('x'), { 'x-content-sha256': sha(Buffer.from('y')) })).json['code']).toBe('sha256_mismatch');
    expect((await host.fetch(at('bad'), { method: 'PUT', persona: func, headers: { 'content-length': '104857601' } })).json['code']).toBe(
      'object_too_large',
    );
    await expect(
      host.fetch(at('bad'), {
        method: 'PUT',
        persona: func,
        body: [Buffer.alloc(200_000)],
        headers: { 'content-length': '400000' },
        cut: true,
      }),
    ).rejects.toThrow();
    for (const key of ['func/../app/x', 'func/a//b', 'func/%2e%2e/x', 'func/', 'func/a%0ab', 'func/a%00']) {
      expect([key, (await put(`/v1/objects/${key}`, Buffer.from('x'))).status]).toEqual([
        key,
        expect.toSatisfy(status => status === 400 || status === 403),
      ]);
    }
    expect((await get(at('bad'))).json['code']).toBe('object_not_found');
    expect((await host.fetch(at('bad'), { method: 'POST', persona: func })).json['code']).toBe('method_refused');
  });

  test('a workload has sixty-four transfers at once: one more is told to come back, and another workload is served', async () => {
    const ended = Promise.withResolvers<void>();
    const slow = async function* () {
      yield Buffer.from('begun');
      await ended.promise;
    };
    const uploads = Array.from({ length: 64 }, (_, index) =>
      host.fetch(at(`slow${index}`), { method: 'PUT', persona: func, body: slow() }),
    );
    try {
      // A put before all of them have come would take the place of one.
      const figures = async () => (await host.fetch('/v1/metrics', { persona: as.user('storage:metrics:read') })).json['transfers'];
      await expect.poll(figures, { timeout: 20_000 }).toBe(64);
      expect((await put(at('late'), Buffer.from('late'))).json['code']).toBe('too_many_transfers');
      expect((await put(`/v1/objects/app/${backend}-late`, Buffer.from('mine'), {}, app)).status).toBe(201);
    } finally {
      ended.resolve();
    }
    expect(new Set((await Promise.all(uploads)).map(({ status }) => status))).toEqual(new Set([201]));
    await expect.poll(async () => (await put(at('late'), Buffer.from('late'))).status, { timeout: 20_000 }).toBeLessThan(300);
  });

  test('a disk without room is 507 with its own code, and nothing is stored', async () => {
    const handle = await openFile(join(stores.dataDir, `${backend}.probe`), 'w');
    const append = vi.spyOn(Object.getPrototypeOf(handle) as FileHandle, 'appendFile');
    await handle.close();
    append.mockRejectedValueOnce(Object.assign(new Error('no space left on device'), { code: 'ENOSPC' }));
    try {
      expect(await put(at('full'), Buffer.from('too much'))).toMatchObject({ status: 507, json: { code: 'storage_full' } });
    } finally {
      append.mockRestore();
    }
    expect((await get(at('full'))).json['code']).toBe('object_not_found');
  });

  test('damaged bytes are never a whole answer, and the check names them', async () => {
    const body = randomBytes(600_000);
    await put(at('sound'), body);
    await put(at('damaged'), body);
    await put(at('missing'), body);
    const sql = await host.sql();
    const idOf = async (name: string) =>
      (await sql<{ blob_id: string }[]>`select blob_id from objects where key = ${`func/${backend}/${name}`}`)[0]?.blob_id ?? '';
    const [damaged, missing] = [await idOf('damaged'), await idOf('missing')];
    const other = Buffer.from(body);
    other[599_999] = (other[599_999] ?? 0) ^ 1;
    await bucket.lay(`kept/here/${damaged}`, other, new Date());
    await bucket.take(`kept/here/${missing}`);
    await expect(get(at('damaged'))).rejects.toThrow();
    expect((await get(at('missing'))).json['code']).toBe('bytes_unreachable');
    const lines: string[] = [];
    const call = async <T>(_: string, method: string, path: string, input: { query?: Readonly<Record<string, unknown>> } = {}) =>
      (
        await host.fetch(`${path}?${new URLSearchParams(input.query as Record<string, string>)}`, {
          method,
          persona: as.machine('captain'),
        })
      ).json as T;
    expect(
      await command.run(['verify'], {
        call,
        print: line => void lines.push(line),
        progress: () => undefined,
        control: async () => Promise.reject(new Error('nobody asks the machine')),
      }),
    ).toBe(1);
    // What the other back end keeps is not here; of what is, nothing else is at fault.
    expect(lines.filter(line => line.includes(`/${backend}/`))).toEqual([
      `x func/${backend}/damaged is changed`,
      `x func/${backend}/missing is missing`,
    ]);
    for (const name of ['damaged', 'missing']) await host.fetch(at(name), { method: 'DELETE', persona: func });
  });

  test('bytes go when their object does, and bytes that never had one are found by the sweep', async () => {
    await put(at('gone'), Buffer.from('gone'));
    await put(at('gone'), Buffer.from('newer'));
    await host.fetch(at('gone'), { method: 'DELETE', persona: func });
    const sql = await host.sql();
    const dropped = await sql<{ blob_id: string }[]>`update dropped set dropped_at = now() - interval '2 minutes' returning blob_id`;
    expect(dropped.length).toBeGreaterThanOrEqual(2);
    const root = join(stores.dataDir, 'files', 'storage', 'blobs');
    const room = backend === 'files' ? (readdirSync(root)[0] as string) : 'a1';
    // Their names come last, on another page of a listing than the first.
    const [old, young] = [`ff900000-0000-7000-8000-0000000001${room}`, `ff900000-0000-7000-8000-0000000002${room}`];
    const has = (id: string) => bucket.has(`kept/here/${id}`);
    const lay = (id: string, hours: number) => bucket.lay(`kept/here/${id}`, Buffer.from('x'), new Date(Date.now() - hours * 3_600_000));
    // fauxqs knows no bytes but those of now.
    if (backend !== 'fauxqs') await lay(old, 2);
    await lay(young, 0);
    const run = (job: string) =>
      host.fetch(`/v1/admin/work/jobs/${job}/run?target_env_id=${admin.envId}`, { method: 'POST', persona: as.user('storage:work:admin') });
    expect((await run('reclaim')).status).toBe(202);
    expect((await run('sweep')).status).toBe(202);
    await vi.waitFor(async () => {
      expect(await sql`select 1 from dropped`).toHaveLength(0);
      expect(await has(old)).toBe(false);
    }, 10_000);
    expect(await Promise.all(dropped.map(({ blob_id }) => has(blob_id)))).not.toContain(true);
    expect(await has(young)).toBe(true);
    const usage = await host.by(admin).usage();
    expect(usage).toMatchObject({
      backend: backend === 'files' ? 'files' : 's3',
      waiting_bytes: 0,
      services: expect.arrayContaining([expect.objectContaining({ owner: 'func' })]),
    });
    expect((await host.by(admin).listObjects({ query: { prefix: 'app/' } })).items.map(({ key }) => key)).toContain(
      `app/${backend}-01900000/icon.png`,
    );
  });

  test.runIf(backend === 'files')('what a crash left of an upload goes when no upload can be that old', async () => {
    const folder = join(stores.dataDir, 'files', 'storage', 'incoming');
    const [old, young] = [join(folder, 'old'), join(folder, 'young')];
    for (const path of [old, young]) writeFileSync(path, 'half an object');
    const day = new Date(Date.now() - 86_400_000);
    utimesSync(old, day, day);
    await host.clock.advance('10m');
    await expect.poll(() => [existsSync(old), existsSync(young)]).toEqual([false, true]);
    rmSync(young);
  });

  // Neither s3rver nor fauxqs fails when it is asked to.
  test.runIf(backend === 'strict')('a provider that fails for a moment is asked again, and one that stays away is an answer', async () => {
    const strict = bucket as StrictBucket;
    strict.failing = 2;
    expect((await put(at('again'), Buffer.from('again'))).status).toBe(201);
    strict.failing = 3;
    expect((await get(at('again'))).json['code']).toBe('bytes_unreachable');
    expect((await get(at('again'))).body.toString()).toBe('again');
    expect(strict.refusals.filter(code => code !== 'SlowDown' && code !== 'NoSuchKey')).toEqual([]);
  });
});
