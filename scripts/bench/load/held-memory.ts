import { readFileSync } from 'node:fs';

/** Kilobytes that only this process holds, and those that it shares with others, above all pages of the Node binary. */
export interface HeldMemory {
  readonly own: number;
  readonly shared: number;
}

export function memoryOf(pid: number | string): HeldMemory {
  const rollup = readFileSync(`/proc/${pid}/smaps_rollup`, 'utf8');
  const sum = (kind: string) =>
    [...rollup.matchAll(new RegExp(`^${kind}_(?:Clean|Dirty):\\s+(\\d+)`, 'gm'))].reduce(
      (total, [, kilobytes]) => total + Number(kilobytes),
      0,
    );
  return { own: sum('Private'), shared: sum('Shared') };
}
