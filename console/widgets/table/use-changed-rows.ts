import { useEffect, useRef, useState } from 'react';

const NONE: ReadonlySet<string> = new Set();

/** Keys of rows that a reload changed or brought, for as long as the eye needs to find them. */
export function useChangedRows(rows: readonly unknown[] | undefined, keyOf: (row: unknown) => string, view: string): ReadonlySet<string> {
  const before = useRef<{ view: string; rows: Map<string, string> }>(undefined);
  const [changed, setChanged] = useState<ReadonlySet<string>>(NONE);
  const key = useRef(keyOf);
  key.current = keyOf;

  useEffect(() => {
    if (!rows) return;
    const now = new Map(rows.map(row => [key.current(row), JSON.stringify(row)]));
    const was = before.current;
    before.current = { view, rows: now };
    if (!was || was.view !== view) return;
    const found = changedKeys(was.rows, now);
    if (found.size === 0) return;
    setChanged(found);
    const timer = setTimeout(() => setChanged(NONE), 2600);
    return () => clearTimeout(timer);
  }, [rows, view]);
  return changed;
}

/** Rows added below what was there are more of the same, not news. */
export function changedKeys(was: ReadonlyMap<string, string>, now: ReadonlyMap<string, string>): ReadonlySet<string> {
  const keys = [...now.keys()];
  const old = [...was.keys()];
  const onlyLonger = old.every((key, index) => keys[index] === key && now.get(key) === was.get(key));
  return onlyLonger && old.length > 0 && keys.length > old.length + 1 ? NONE : new Set(keys.filter(key => was.get(key) !== now.get(key)));
}
