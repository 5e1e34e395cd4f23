import { expect, test } from 'vitest';
import { TimedCache } from './cache.ts';

const world = (options: Partial<ConstructorParameters<typeof TimedCache<string>>[0]> = {}) => {
  let now = 0;
  const asked: string[] = [];
  const cache = new TimedCache<string>({ max: 3, ttl: 100, ...options }, () => now);
  const get = (key: string, answer: string | Error | Promise<string> = key) =>
    cache.get(key, async () => {
      asked.push(key);
      if (answer instanceof Error) throw answer;
      return answer;
    });
  return { cache, get, asked, later: (ms: number) => void (now += ms) };
};

test('an answer is asked for once as long as it is good, by however many at once', async () => {
  const { get, asked, later } = world();
  expect(await Promise.all([get('a'), get('a'), get('a')])).toEqual(['a', 'a', 'a']);
  later(99);
  await get('a');
  expect(asked).toEqual(['a']);
  later(1);
  expect([await get('a', 'b'), asked.length]).toEqual(['b', 2]);
});

test('it is bounded: the one that was used longest ago goes', async () => {
  const { cache, get } = world();
  for (const key of ['a', 'b', 'c', 'a', 'd']) await get(key);
  expect([cache.peek('a'), cache.peek('b'), cache.values().length]).toEqual(['a', undefined, 3]);
});

test('a failure is not kept, and an older answer stands in for it where that is said', async () => {
  const { get, later } = world({ stale: { ms: 500, on: error => (error as Error).message === 'away' } });
  await expect(get('a', new Error('away'))).rejects.toThrow('away');
  await get('a');
  later(200);
  expect(await get('a', new Error('away'))).toBe('a');
  await expect(get('a', new Error('no'))).rejects.toThrow('no');
  later(300);
  await expect(get('a', new Error('away'))).rejects.toThrow('away');
});

test('how long may depend on the answer, and nothing is kept for no time', async () => {
  const { cache, get } = world({ ttl: value => (value === 'none' ? 0 : 10) });
  await get('a', 'none');
  await get('b');
  expect([cache.peek('a'), cache.peek('b')]).toEqual([undefined, 'b']);
});

test('what is forgotten on its way is given to who waits, and kept for nobody', async () => {
  const { cache, get, asked } = world();
  for (const forget of [() => cache.forget('a'), () => cache.forget(), () => cache.forget(() => false)]) {
    const { promise, resolve } = Promise.withResolvers<string>();
    const waiting = get('a', promise);
    forget();
    resolve('old');
    expect([await waiting, cache.peek('a')]).toEqual(['old', undefined]);
  }
  expect(asked).toHaveLength(3);
  await get('a');
  await get('b');
  cache.forget((_, value) => value === 'a');
  expect(cache.values()).toEqual(['b']);
});

test('what is kept or asked under another version is no answer', async () => {
  const { cache, asked } = world();
  const under = (version: string | undefined, answer: string | Promise<string> = `of ${version}`) =>
    cache.get(
      'a',
      async () => {
        asked.push(String(version));
        return answer;
      },
      version,
    );
  expect([await under('1'), await under('1'), await under('2'), await under('2'), await under(undefined, 'x')]).toEqual([
    'of 1',
    'of 1',
    'of 2',
    'of 2',
    'of 2',
  ]);
  expect(asked).toEqual(['1', '2']);
  const { promise, resolve } = Promise.withResolvers<string>();
  const [slow, quick] = [under('3', promise), under('4')];
  expect(await quick).toBe('of 4');
  resolve('late');
  expect([await slow, cache.peek('a')]).toEqual(['late', 'of 4']);
});

test('an answer that says itself until when it is good is not good for longer as time goes on', async () => {
  let now = 0;
  const cache = new TimedCache<number>({ max: 3, ttl: until => until - now }, () => now);
  const get = () => cache.get('a', async () => now + 100);
  expect(await get()).toBe(100);
  now = 99;
  expect(await get()).toBe(100);
  now = 100;
  expect(await get()).toBe(200);
});
