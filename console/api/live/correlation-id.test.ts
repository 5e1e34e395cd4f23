import { expect, test } from 'vitest';
import { correlationId } from './correlation-id.ts';

test('CON-013 correlation ids are dsh-<epoch>-<rand>', () => {
  expect(correlationId(1760000000123, () => 0.5)).toBe('dsh-1760000000123-iiiiiiii');
  expect(correlationId()).toMatch(/^dsh-\d{13}-[0-9a-z]{8}$/);
});
