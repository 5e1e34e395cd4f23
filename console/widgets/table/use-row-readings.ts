import { useEffect, useState } from 'react';
import { valueAt } from '../page/path.ts';

const READINGS = 40;
const ROWS = 200;

/**
 * What columns of each row said at the readings before, the oldest first, since somebody began to look. `paths` are those columns; of rows
 * that are gone nothing is kept.
 */
export function useRowReadings(
  rows: readonly unknown[],
  keyOf: (row: unknown) => string,
  paths: readonly string[],
): (key: string, path: string) => readonly number[] {
  const [readings, setReadings] = useState<ReadonlyMap<string, readonly number[]>>(new Map());
  // biome-ignore lint/correctness/useExhaustiveDependencies: a reading is one answer, and its rows are new with each
  useEffect(() => {
    if (paths.length === 0) return;
    setReadings(before => {
      const after = new Map<string, readonly number[]>();
      for (const row of rows.slice(0, ROWS)) {
        for (const path of paths) {
          const [name, value] = [`${keyOf(row)} ${path}`, Number(valueAt(row, path))];
          const known = before.get(name) ?? [];
          after.set(name, Number.isFinite(value) ? [...known.slice(1 - READINGS), value] : known);
        }
      }
      return after;
    });
  }, [rows]);
  return (key, path) => readings.get(`${key} ${path}`) ?? [];
}
