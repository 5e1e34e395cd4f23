import { expect, test } from 'vitest';
import { reconnectBound, reconnectDelay } from './reconnect-delay.ts';

test('CON-039 reconnecting waits 1, 2, 4, 8, 16, then 30 seconds', () => {
  expect([0, 1, 2, 3, 4, 5, 6, 40].map(reconnectBound)).toEqual([1000, 2000, 4000, 8000, 16_000, 30_000, 30_000, 30_000]);
});

test('jitter stays below the bound', () => {
  expect(reconnectDelay(3, () => 0)).toBe(0);
  expect(reconnectDelay(3, () => 0.999999)).toBe(8000);
});
