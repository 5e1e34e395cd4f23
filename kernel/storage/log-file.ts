import { closeSync, fstatSync, mkdirSync, openSync, readFileSync, renameSync } from 'node:fs';
import { open } from 'node:fs/promises';
import { join } from 'node:path';

const MAX_BYTES = 5 * 1024 * 1024;
const TAIL_BYTES = 262_144;

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

/** The last lines of a file, oldest first; none where it is not there. */
export async function linesAtEnd(path: string): Promise<string[]> {
  const file = await open(path, 'r').catch((error: NodeJS.ErrnoException) => {
    if (error.code !== 'ENOENT') throw error;
  });
  if (!file) return [];
  try {
    const { size } = await file.stat();
    const length = Math.min(size, TAIL_BYTES);
    const { buffer } = await file.read(Buffer.alloc(length), 0, length, size - length);
    const lines = buffer.toString('utf8').split('\n');
    // The first one may have been cut.
    return lines.slice(size > length ? 1 : 0).filter(Boolean);
  } finally {
    await file.close();
  }
}
