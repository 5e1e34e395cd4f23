import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { LatestOnly } from './latest-only.ts';

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

test('CON-003 the availability check waits 300 ms and asks once for what was typed last', async () => {
  const asked: string[] = [];
  const check = new LatestOnly(async (slug: string) => {
    asked.push(slug);
    return slug;
  });
  const heard: string[] = [];
  for (const slug of ['a', 'ac', 'acm'])
    check.ask(
      slug,
      answer => heard.push(answer),
      () => undefined,
    );
  await vi.advanceTimersByTimeAsync(299);
  expect(asked).toEqual([]);
  await vi.advanceTimersByTimeAsync(1);
  expect([asked, heard]).toEqual([['acm'], ['acm']]);
});

test('CON-003 a slow answer never overtakes a later one', async () => {
  const answers: ((value: string) => void)[] = [];
  const check = new LatestOnly((_: string) => new Promise<string>(done => answers.push(done)));
  const heard: string[] = [];
  check.ask(
    'first',
    answer => heard.push(answer),
    () => undefined,
  );
  await vi.advanceTimersByTimeAsync(300);
  check.ask(
    'second',
    answer => heard.push(answer),
    () => undefined,
  );
  await vi.advanceTimersByTimeAsync(300);
  answers[1]?.('second');
  answers[0]?.('first');
  await vi.advanceTimersByTimeAsync(0);
  expect(heard).toEqual(['second']);
});
