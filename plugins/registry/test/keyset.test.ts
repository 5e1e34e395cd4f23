import { expect, test } from 'vitest';
import type { Ctx } from '../src/context.ts';
import { decodeCursor, page } from '../src/keyset.ts';

const rows = Array.from({ length: 4 }, (_, n) => ({ at: `2026-01-0${n + 1}T00:00:00.000Z`, id: `018f0000-0000-7000-8000-00000000000${n}` }));

test.each([
  [0, null],
  [2, null],
  [3, null],
  [4, rows[2]],
])('F-15 of %i rows a page of three names a next one only where there is one', (count, next) => {
  const { items, next_cursor: cursor } = page(rows.slice(0, count), 3, row => row);
  expect([items, cursor === null ? null : decodeCursor({} as Ctx, cursor)]).toEqual([rows.slice(0, Math.min(count, 3)), next]);
});
