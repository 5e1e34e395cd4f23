import type { KeyValue } from '@platform/sdk';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { TestKeyValue } from '../fixtures/test-key-value.ts';
import { ProcessLimit } from './process-limit.ts';
import { RateLimit } from './rate-limit.ts';

let store: TestKeyValue;
let kv: Pick<KeyValue, 'call'>;
const warned: object[] = [];
const log = { debug() {}, info() {}, warn: (fields: object) => void warned.push(fields), error() {} };
beforeAll(async () => {
  store = await TestKeyValue.start();
  kv = { call: (command, ...args) => store.client.call(command, ...args.map(String)) };
});
afterAll(() => store[Symbol.asyncDispose]());
const limit = (name: string) => new RateLimit(kv, 'shop', log, { name, max: 3, seconds: 60 });

test('so many are let through in a window, for each key by itself and for every process together', async () => {
  const [here, there] = [limit('login'), limit('login')];
  expect([await here.take('a'), await there.take('a'), await here.take('a')].map(({ allowed, left }) => [allowed, left])).toEqual([
    [true, 2],
    [true, 1],
    [true, 0],
  ]);
  const refused = await there.take('a');
  expect(refused).toMatchObject({
    allowed: false,
    left: 0,
    headers: { 'ratelimit-policy': '"login";q=3;w=60', ratelimit: expect.stringContaining('"login";r=0;t=') },
  });
  expect(refused.headers['retry-after']).toBe(String(refused.retryAfterSeconds));
  expect((await here.take('b')).allowed).toBe(true);
  expect((await limit('other').take('a', 4)).allowed).toBe(false);
});

test('a key that a client chose takes bounded room, and a window ends', async () => {
  await limit('long').take('x'.repeat(100_000));
  const [name] = await store.client.keys('shop:rate:long:*');
  expect(name?.length).toBeLessThan(120);
  expect(await store.client.pttl(name as string)).toBeGreaterThan(0);
});

test('a store that is away refuses nobody, and says so', async () => {
  const away = new RateLimit({ call: async () => Promise.reject(new Error('gone')) }, 'shop', log, { name: 'login', max: 1, seconds: 60 });
  expect([(await away.take('a')).allowed, (await away.take('a')).allowed]).toEqual([true, true]);
  expect(warned).toMatchObject([{ limit: 'login' }, { limit: 'login' }]);
});

test('item 10: a limit refuses by itself, and takes that come together are counted one by one', async () => {
  const strict = limit('strict');
  const all = await Promise.all(Array.from({ length: 5 }, () => strict.take('a')));
  expect(all.map(({ allowed, left }) => [allowed, left])).toEqual([
    [true, 2],
    [true, 1],
    [true, 0],
    [false, 0],
    [false, 0],
  ]);
  await expect(strict.require('a')).rejects.toMatchObject({
    code: 'rate_limited',
    status: 429,
    headers: { ratelimit: expect.any(String) },
  });
  // To look counts nothing.
  expect((await limit('seen').take('a', 0)).left).toBe(3);
  expect([await limit('part').takeUpTo('a', 2), await limit('part').takeUpTo('a', 2), await limit('part').takeUpTo('a', 2)]).toEqual([
    2, 1, 0,
  ]);
});

test('item 10: a bucket gives so many at once and then what comes back, all that is asked or as much as there is', async () => {
  const bucket = new RateLimit(kv, 'shop', log, { name: 'bucket', perSecond: 0.001, burst: 10 });
  expect((await bucket.take('a', 8)).allowed).toBe(true);
  expect(await bucket.take('a', 3)).toMatchObject({ allowed: false, left: 2, headers: { 'ratelimit-policy': '"bucket";q=10;w=10000' } });
  expect([await bucket.takeUpTo('a', 5), await bucket.takeUpTo('a', 5)]).toEqual([2, 0]);
});

test('item 10: where guesses are counted, a store that is away lets nobody through', async () => {
  const away = { call: async () => Promise.reject(new Error('gone')) };
  const guesses = new RateLimit(away, 'shop', log, { name: 'login', max: 1, seconds: 60, whenAway: 'refuse' });
  await expect(guesses.take('a')).rejects.toThrow('gone');
  await expect(guesses.take('a')).rejects.toThrow('gone');
});

test('item 10: a process counts windows and buckets by itself, of so many keys', () => {
  let now = 0;
  const bucket = new ProcessLimit({ counts: 'process', name: 'edge', perSecond: 100, burst: 200, keys: 2 }, () => now);
  const taken = (key: string, times: number) =>
    Array.from({ length: times }, () => bucket.take(key)).filter(({ allowed }) => allowed).length;
  expect(taken('a', 250)).toBe(200);
  now = 50;
  expect([taken('a', 10), bucket.take('a').headers]).toEqual([
    5,
    { 'retry-after': '1', ratelimit: '"edge";r=0;t=1', 'ratelimit-policy': '"edge";q=200;w=2' },
  ]);
  expect([taken('b', 1), taken('c', 1), bucket.size]).toEqual([1, 1, 2]);
  const hourly = new ProcessLimit({ counts: 'process', name: 'mail', max: 1, seconds: 60 }, () => now);
  expect([hourly.take('a').allowed, hourly.take('a')]).toMatchObject([true, { allowed: false, retryAfterSeconds: 60 }]);
  now += 60_000;
  expect(hourly.take('a').allowed).toBe(true);
});
