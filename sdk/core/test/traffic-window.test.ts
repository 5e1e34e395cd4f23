import { expect, test } from 'vitest';
import { TrafficWindow } from '../src/traffic-window.ts';

const NOW = new Date('2026-01-01T00:00:00Z');

test('G-STAT-04 an answer that waited on purpose is counted, and its time is none of the answer times', () => {
  const window = new TrafficWindow('bus');
  for (const ms of [1, 2, 3]) window.add(200, ms);
  for (let polls = 0; polls < 97; polls += 1) window.add(200);
  window.add(503);
  expect(window.take(NOW)).toEqual({
    service: 'bus',
    at: NOW.toISOString(),
    counts: { requests: 101, waited: 98 },
    statuses: { '2xx': 100, '5xx': 1 },
    latency_ms: { p50: 2, p95: 3, p99: 3 },
  });
});

test('a window of nothing but waits has no answer times, and the next begins anew', () => {
  const window = new TrafficWindow('bus');
  window.add(200);
  expect(window.take(NOW)).toMatchObject({ counts: { requests: 1, waited: 1 }, latency_ms: { p50: 0, p95: 0, p99: 0 } });
  expect(window.take(NOW)).toBeUndefined();
});
