import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { coalesced } from './coalesced.ts';

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

test('a burst is one run, and calls during a run lead to exactly one more', async () => {
  let runs = 0;
  const call = coalesced(async () => {
    runs++;
    await new Promise(done => setTimeout(done, 1000));
  }, 100);
  for (let i = 0; i < 20; i++) call();
  await vi.advanceTimersByTimeAsync(100);
  expect(runs).toBe(1);
  call();
  call();
  await vi.advanceTimersByTimeAsync(5000);
  expect(runs).toBe(2);
});

test('a run that fails does not stop the next one', async () => {
  let runs = 0;
  const call = coalesced(async () => {
    runs++;
    throw new Error('away');
  }, 10);
  call();
  await vi.advanceTimersByTimeAsync(20);
  call();
  await vi.advanceTimersByTimeAsync(20);
  expect(runs).toBe(2);
});
