import { expect, test } from 'vitest';
import { holds } from './condition.ts';
import { valueAt } from './path.ts';

test('one comparison', () => {
  expect(holds(undefined, {})).toBe(true);
  expect(holds({ path: 'a.b', op: 'eq', value: 1 }, { a: { b: 1 } })).toBe(true);
  expect(holds({ path: 'a', op: 'ne', value: 1 }, { a: 1 })).toBe(false);
  expect(holds({ path: 'a', op: 'exists' }, { a: null })).toBe(false);
  expect(holds({ path: 'a', op: 'exists', value: false }, {})).toBe(true);
  expect(holds({ path: 'a', op: 'eq', value: 2 }, { a: 1 }, { a: 2 })).toBe(true);
});

test('a path ends where a step is missing, and never reaches the prototype', () => {
  expect(valueAt({ a: [{ b: 2 }] }, 'a.0.b')).toBe(2);
  expect(valueAt({ a: null }, 'a.b')).toBeUndefined();
  expect(valueAt({}, 'constructor.name')).toBeUndefined();
});
