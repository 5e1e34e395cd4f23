import { expect, test } from 'vitest';
import { LogRing } from './log-ring.ts';

test('CON-014 the log ring keeps the last 1000 entries', () => {
  const ring = new LogRing();
  for (let i = 0; i < 1003; i++) ring.add({ kind: 'call', text: String(i) });
  expect(ring.entries()).toHaveLength(1000);
  expect(ring.entries()[0]?.text).toBe('3');
});
