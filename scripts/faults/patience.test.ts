import { expect, test, vi } from 'vitest';
import { Patience } from './patience.ts';

test('patience ends after its seconds, and does not count those for which the process was halted', () => {
  vi.useFakeTimers();
  using _ = { [Symbol.dispose]: () => vi.useRealTimers() };
  using patience = new Patience(3);
  vi.advanceTimersByTime(2_000);
  // Whoever goes on after a halt finds later clocks, and each of its timers due once.
  vi.setSystemTime(Date.now() + 3_600_000);
  expect(patience.ended).toBe(false);
  vi.advanceTimersByTime(1_000);
  expect(patience.ended).toBe(true);
});

test('patience that was disposed of holds no timer', () => {
  vi.useFakeTimers();
  using _ = { [Symbol.dispose]: () => vi.useRealTimers() };
  const patience = new Patience(1);
  patience[Symbol.dispose]();
  expect(vi.getTimerCount()).toBe(0);
});
