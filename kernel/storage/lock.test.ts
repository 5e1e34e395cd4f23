import { once } from 'node:events';
import type { KeyValue } from '@platform/sdk';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { TestKeyValue } from './fixtures/test-key-value.ts';
import { locksOf } from './lock.ts';

let store: TestKeyValue;
let kv: Pick<KeyValue, 'call'>;
const warned: object[] = [];
const log = { debug() {}, info() {}, warn: (fields: object) => void warned.push(fields), error() {} };
beforeAll(async () => {
  store = await TestKeyValue.start();
  kv = { call: (command, ...args) => store.client.call(command, ...args.map(String)) };
});
afterAll(() => store[Symbol.asyncDispose]());

test('one of many processes does the work; whoever waits does it after, in turn, and whoever does not is told', async () => {
  const [here, there] = [locksOf(kv, 'shop', log), locksOf(kv, 'shop', log)];
  let [inside, most] = [0, 0];
  const work = async () => {
    most = Math.max(most, ++inside);
    await new Promise(resolve => setImmediate(resolve));
    inside -= 1;
    return 'done';
  };
  const gate = Promise.withResolvers<void>();
  const first = here('count', { ttl: '1s' }, async () => gate.promise.then(work));
  await expect.poll(() => store.client.exists('shop:lock:count')).toBe(1);
  expect(await there('count', { ttl: '1s' }, work)).toEqual({ held: false });
  expect(await there('other', { ttl: '1s' }, work)).toEqual({ held: true, value: 'done' });
  const waiting = [here, there, there].map(lock => lock('count', { ttl: '1s', wait: '30s' }, work));
  gate.resolve();
  expect(await Promise.all([first, ...waiting])).toEqual(Array.from({ length: 4 }, () => ({ held: true, value: 'done' })));
  expect([most, await store.client.exists('shop:lock:count')]).toEqual([1, 0]);
});

test('a holder keeps it past its time while the work goes on; work that fails gives it back', async () => {
  const lock = locksOf(kv, 'shop', log);
  const outlived = lock('long', { ttl: '1s' }, async signal => {
    let renewed = 0;
    // Each renewal puts the time up again.
    for (let [last, left] = [1_001, 0]; renewed < 4; last = left) {
      left = await store.client.pttl('shop:lock:long');
      if (left > last) renewed += 1;
      await new Promise(resolve => setImmediate(resolve));
    }
    return signal.aborted;
  });
  expect(await outlived).toEqual({ held: true, value: false });
  await expect(lock('long', { ttl: '1s' }, () => Promise.reject(new Error('broken')))).rejects.toThrow('broken');
  expect(await store.client.exists('shop:lock:long')).toBe(0);
});

test('a lock that the store forgot, or that another has, ends the signal of the work and is left to the other', async () => {
  warned.length = 0;
  const lost = await locksOf(kv, 'shop', log)('gone', { ttl: '1s' }, async signal => {
    await store.client.set('shop:lock:gone', 'another');
    await once(signal, 'abort');
    return signal.aborted;
  });
  expect(lost).toEqual({ held: true, value: true });
  expect(await store.client.get('shop:lock:gone')).toBe('another');
  expect(warned).toEqual([{ lock: 'gone', code: 'lock_lost' }]);
});

test('a store that is away for longer than it lasts ends the signal too', async () => {
  let away = false;
  const broken: Pick<KeyValue, 'call'> = {
    call: (command, ...args) => (away ? Promise.reject(new Error('gone')) : kv.call(command, ...args)),
  };
  const lost = await locksOf(broken, 'shop', log)('away', { ttl: '1s' }, async signal => {
    away = true;
    await once(signal, 'abort');
    return signal.aborted;
  });
  expect(lost).toEqual({ held: true, value: true });
});
