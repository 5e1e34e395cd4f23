import { AsyncLocalStorage } from 'node:async_hooks';
import { Batcher, type BatcherOptions } from '@platform/sdk';
import { expect, test } from 'vitest';

const made = (work: BatcherOptions<number, string>['work'], more: Partial<BatcherOptions<number, string>> = {}) =>
  new Batcher<number, string>({ most: 3, waiting: 5, deadlineMs: 10_000, full: () => new Error('full'), work, ...more });
const settled = async (all: readonly Promise<string>[]) =>
  (await Promise.allSettled(all)).map(each => (each.status === 'fulfilled' ? each.value : (each.reason as Error).message));

test('what comes together goes together, in its order and so many at once; what comes meanwhile rides the next', async () => {
  const batches: (readonly number[])[] = [];
  const gate = Promise.withResolvers<void>();
  const batcher = made(async items => {
    batches.push(items);
    await gate.promise;
    return items.map(String);
  });
  const first = [1, 2, 3, 4].map(n => batcher.add(n));
  await expect.poll(() => batches.length).toBe(1);
  const later = batcher.add(5);
  gate.resolve();
  expect(await settled([...first, later])).toEqual(['1', '2', '3', '4', '5']);
  expect(batches).toEqual([
    [1, 2, 3],
    [4, 5],
  ]);
});

test('one that fails fails alone; what is thrown fails all of its batch and none of the next', async () => {
  const batcher = made(async items => {
    if (items.includes(9)) throw new Error('away');
    return items.map(n => (n === 2 ? new Error('two') : String(n)));
  });
  expect(await settled([1, 2, 3, 9, 4].map(n => batcher.add(n)))).toEqual(['1', 'two', '3', 'away', 'away']);
  expect(await batcher.add(1)).toBe('1');
});

test('whoever finds no room is refused at once, by number and by weight', async () => {
  const batcher = made(async items => items.map(String));
  expect(await settled([1, 2, 3, 4, 5, 6].map(n => batcher.add(n)))).toEqual(['1', '2', '3', '4', '5', 'full']);
  const batches: number[] = [];
  const weighed = made(
    async items => {
      batches.push(items.length);
      return items.map(String);
    },
    { weight: { of: n => n, most: 10, waiting: 25 } },
  );
  expect(await settled([10, 10, 5, 1].map(n => weighed.add(n)))).toEqual(['10', '10', '5', 'full']);
  expect(batches).toEqual([1, 1, 1]);
});

test('a batch that does not end has a deadline: those in it are told, its signal ends, and the next one goes on', async () => {
  const signals: AbortSignal[] = [];
  const batcher = made(
    async (items, signal) => {
      signals.push(signal);
      if (items.includes(1)) await new Promise(() => undefined);
      return items.map(String);
    },
    { most: 1, deadlineMs: 20 },
  );
  expect(await settled([batcher.add(1), batcher.add(2)])).toEqual([expect.stringContaining('longer than 20 ms'), '2']);
  expect(signals.map(({ aborted }) => aborted)).toEqual([true, false]);
});

test('the pump does not run as the request that started it', async () => {
  const request = new AsyncLocalStorage<string>();
  const batcher = made(async items => items.map(() => request.getStore() ?? 'nobody'));
  expect(await request.run('somebody', () => batcher.add(1))).toBe('nobody');
});
