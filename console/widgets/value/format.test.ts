import { expect, test } from 'vitest';
import type { Format } from '../../api/page-def.ts';
import { formatted } from './format.ts';

test.each<[unknown, Format, string]>([
  [1234567.891, 'number', '1,234,567.89'],
  ['12', 'number', '12'],
  ['n/a', 'number', 'n/a'],
  [0, 'bytes', '0 B'],
  [48_210_400, 'bytes', '48.2 MB'],
  [12.34, 'percent', '12.3 %'],
  [75, 'duration_s', '1 min 15 s'],
  [90_061, 'duration_s', '1 d 1 h'],
  [0, 'duration_s', '0 s'],
  [0.25, 'duration_s', '250 ms'],
  [false, 'bool', 'No'],
  [null, 'text', '–'],
  [{ a: 1 }, 'text', '{"a":1}'],
  ['awaiting_approval', 'badge', 'Awaiting approval'],
  ['active', 'badge', 'Active'],
  ['v1.2_rc', 'badge', 'v1.2_rc'],
  [false, 'badge', 'No'],
  ['awaiting_approval', 'text', 'awaiting_approval'],
  ['2026-03-04T05:06:07.000Z', 'datetime', 'Mar 4, 2026, 5:06:07 AM'],
  ['soon', 'datetime', 'soon'],
])('%j as %s', (value, format, text) => expect(formatted(value, format, { locale: 'en-US', timeZone: 'UTC' })).toBe(text));
