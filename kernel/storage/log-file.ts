import { closeSync, fstatSync, mkdirSync, openSync, readFileSync, renameSync } from 'node:fs';
import { join } from 'node:path';

const MAX_BYTES = 5 * 1024 * 1024;

/** A log that a detached process writes; `from` is where this run begins. */
export interface LogFile {
  readonly path: string;
  readonly fd: number;
  readonly from: number;
}

/** Opens a log to append to. One that has grown large becomes `.1` first, so that a log takes two files at most. */
export function openLog(directory: string, name: string): LogFile {
  mkdirSync(directory, { recursive: true, mode: 0o700 });
  const path = join(directory, name);
  for (;;) {
    const fd = openSync(path, 'a', 0o600);
    const from = fstatSync(fd).size;
    if (from < MAX_BYTES) return { path, fd, from };
    closeSync(fd);
    renameSync(path, `${path}.1`);
  }
}

/** The last of what this run wrote. */
export function tailOf({ path, from }: LogFile): string {
  return readFileSync(path).subarray(from).subarray(-2_000).toString('utf8').trim();
}
