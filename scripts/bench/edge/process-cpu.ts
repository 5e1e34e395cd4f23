import { readdirSync, readFileSync } from 'node:fs';

/**
 * CPU that a process has taken so far in the threads it has now, in µs; with `family` that of its children, and of theirs, as well. From
 * the scheduler's own clock, because ticks of a hundredth of a second say too little of a short load.
 */
export function cpuUs(pid: number, family = false): number {
  const parents = family ? parentsOf() : new Map<number, number>();
  const mine = [pid, ...[...parents.keys()].filter(each => descends(each, pid, parents))];
  return mine.reduce((total, each) => total + threadsUs(each), 0);
}

const threadsUs = (pid: number): number =>
  namesIn(`/proc/${pid}/task`).reduce(
    (total, thread) => total + Number(text(`/proc/${pid}/task/${thread}/schedstat`).split(' ')[0]) / 1_000,
    0,
  );

function descends(pid: number, from: number, parents: ReadonlyMap<number, number>): boolean {
  for (let at = parents.get(pid); at !== undefined; at = parents.get(at)) if (at === from) return true;
  return false;
}

/** The fields of `stat` stand behind the name, which may hold anything. */
const parentsOf = (): Map<number, number> =>
  new Map(
    namesIn('/proc')
      .filter(name => /^\d+$/.test(name))
      .map(pid => [
        Number(pid),
        Number(
          text(`/proc/${pid}/stat`)
            .replace(/^.*\) /s, '')
            .split(' ')[1],
        ),
      ]),
  );

/** Nothing of what has just ended. */
const text = (file: string): string => attempt(() => readFileSync(file, 'utf8'), '');
const namesIn = (folder: string): string[] => attempt(() => readdirSync(folder), []);
function attempt<T>(read: () => T, otherwise: T): T {
  try {
    return read();
  } catch {
    return otherwise;
  }
}
