import type { KeyValue } from '@platform/sdk';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { TestKeyValue } from './fixtures/test-key-value.ts';
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
