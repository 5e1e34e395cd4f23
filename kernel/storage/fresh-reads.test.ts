import { once } from 'node:events';
import { afterAll, beforeAll, expect, test, vi } from 'vitest';
import { TestKeyValue } from './fixtures/test-key-value.ts';
import { FreshReads } from './fresh-reads.ts';

let store: TestKeyValue;
beforeAll(async () => {
  store = await TestKeyValue.start();
});
afterAll(() => store[Symbol.asyncDispose]());

/** Commands of a kind the server has run. */
const ran = async (command: string): Promise<number> =>
  Number(new RegExp(`cmdstat_${command}:calls=(\\d+)`).exec(await store.client.info('commandstats'))?.[1] ?? 0);

test('H-31 a write that was answered is seen by every read asked for after it, however many are on their way', async () => {
  const reads = new FreshReads(store.client);
  for (let turn = 0; turn < 200; turn++) {
    // On its way, with an answer from before the write.
    const earlier = reads.get(['version', 'absent']);
    await store.client.set('version', String(turn));
    const later = Array.from({ length: 5 }, () => reads.get(['version']));
    expect(await Promise.all(later)).toEqual(Array(5).fill([String(turn)]));
    expect((await earlier)[1]).toBeNull();
  }
});

test('reads of one moment go together, each key once', async () => {
  const reads = new FreshReads(store.client);
  await store.client.mset('a', '1', 'b', '2');
  const [before, keys] = [await ran('mget'), vi.spyOn(store.client, 'mget')];
  const asked = Array.from({ length: 100 }, (_, index) => reads.get(index % 2 ? ['a', 'b'] : ['b']));
  expect((await Promise.all(asked)).slice(0, 2)).toEqual([['2'], ['1', '2']]);
  expect((await ran('mget')) - before).toBe(1);
  expect(keys.mock.calls).toEqual([[['b', 'a']]]);
  keys.mockRestore();
});

test('a key of another kind has no value, and hurts no reader', async () => {
  const reads = new FreshReads(store.client);
  await store.client.hset('hash', 'field', 'value');
  expect(await Promise.all([reads.get(['hash', 'a']), reads.get(['a'])])).toEqual([[null, '1'], ['1']]);
});

test('without the store every reader is told, and the next read works when it is back', async () => {
  const lone = await store.duplicate();
  const reads = new FreshReads(lone);
  lone.disconnect();
  await once(lone, 'end');
  const refused = await Promise.allSettled([reads.get(['a']), reads.get(['b'])]);
  expect(refused.map(({ status }) => status)).toEqual(['rejected', 'rejected']);
  await lone.connect();
  expect(await reads.get(['a'])).toEqual(['1']);
});
