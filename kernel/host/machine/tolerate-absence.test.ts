import { expect, test } from 'vitest';
import { tolerateAbsence } from './tolerate-absence.ts';

test('what nobody heard of a store that is away is a line; anything else is thrown on, and ends the process', () => {
  const before = process.listeners('unhandledRejection');
  const lines: string[] = [];
  const tolerance = tolerateAbsence({ warn: (_fields, message) => lines.push(message) });
  const hear = process.listeners('unhandledRejection').find(listener => !before.includes(listener)) as (reason: unknown) => void;
  hear(Object.assign(new Error('the database system is starting up'), { code: '57P03' }));
  expect(lines).toEqual(['a store is away']);
  const defect = new TypeError('undefined is not a function');
  expect(() => hear(defect)).toThrow(defect);
  tolerance[Symbol.dispose]();
  expect(process.listeners('unhandledRejection')).toEqual(before);
});
