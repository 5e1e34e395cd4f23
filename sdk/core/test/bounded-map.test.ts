import { expect, test } from 'vitest';
import { BoundedMap } from '../src/bounded-map.ts';

test('a bounded map lets the entry go that was set longest ago, and what is set again is new', () => {
  const map = new BoundedMap<string, number>(2);
  map.set('a', 1).set('b', 2).set('a', 3).set('c', 4);
  expect([...map]).toEqual([
    ['a', 3],
    ['c', 4],
  ]);
  map.delete('a');
  map.set('d', 5);
  expect([...map.keys()]).toEqual(['c', 'd']);
});
