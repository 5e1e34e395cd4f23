import { expect, test } from 'vitest';
import { isSlug, slugOf } from './slug.ts';

test.each([
  ['Blue Harbour', 'blue-harbour'],
  ['  Zürich & Söhne!  ', 'zurich-sohne'],
  ['24 Hours', 'x-24-hours'],
  ['ﬁne', 'fine'],
  ['a'.repeat(60), 'a'.repeat(40)],
  [`${'a'.repeat(39)} b`, 'a'.repeat(39)],
  ['東京', ''],
])('CON-003 the slug of %j', (name, slug) => expect(slugOf(name)).toBe(slug));

test('CON-003 which slugs may be asked about', () => {
  expect(['blue', 'a-1', 'abc'].every(isSlug)).toBe(true);
  expect(['', 'ab-', '1ab', 'a', 'A-b', 'a'.repeat(41)].some(isSlug)).toBe(false);
});
