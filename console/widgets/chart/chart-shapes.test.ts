import { expect, test } from 'vitest';
import { area, bars, line, niceMax, slices } from './chart-shapes.ts';
import { changedKeys } from '../table/use-changed-rows.ts';

const frame = { width: 100, height: 50, top: 10 };

test('axes end at a readable number', () => {
  expect([[], [3], [18], [99], [240], [0.03]].map(points => niceMax([points]))).toEqual([1, 5, 20, 100, 250, 0.05]);
});

test('shapes fill their frame', () => {
  expect(line([0, 10], frame)).toBe('M0 50L100 0');
  expect(line([5], frame)).toBe('M50 25');
  expect(area([0, 10], frame)).toBe('M0 50L100 0L100 50L0 50Z');
  expect(bars([10, 5], 0, 1, frame)[1]).toMatchObject({ y: 25, height: 25 });
  expect(slices([1, 1], 0, 0, 10)[0]).toBe('M0 0L0 -10A10 10 0 0 1 0 10Z');
  expect(slices([3], 0, 0, 10)[0]).toContain('A10 10 0 1 1');
});

test('a reload marks rows that changed or came, not a longer list', () => {
  const was = new Map([
    ['a', '1'],
    ['b', '1'],
  ]);
  expect([
    ...changedKeys(
      was,
      new Map([
        ['a', '2'],
        ['b', '1'],
      ]),
    ),
  ]).toEqual(['a']);
  expect([
    ...changedKeys(
      was,
      new Map([
        ['c', '1'],
        ['a', '1'],
        ['b', '1'],
      ]),
    ),
  ]).toEqual(['c']);
  expect([
    ...changedKeys(
      was,
      new Map([
        ['a', '1'],
        ['b', '1'],
        ['c', '1'],
        ['d', '1'],
      ]),
    ),
  ]).toEqual([]);
});
