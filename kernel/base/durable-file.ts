import { closeSync, fsyncSync, mkdirSync, openSync, renameSync, writeSync } from 'node:fs';
import { dirname } from 'node:path';

/** Inside the walls of a vertical nothing may be flushed: what is lost with the power there is made again. */
function flush(file: number): void {
  try {
    fsyncSync(file);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ERR_ACCESS_DENIED') throw error;
  }
}

/** Replaces a file so that a crash leaves the old or the new content, never half: temporary file, fsync, rename (G-ACME-01). */
export function writeDurably(path: string, content: string | Uint8Array, mode = 0o600): void {
  mkdirSync(dirname(path), { recursive: true, mode: 0o700 });
  const temporary = `${path}.${process.pid}.tmp`;
  const file = openSync(temporary, 'w', mode);
  try {
    writeSync(file, typeof content === 'string' ? Buffer.from(content) : content);
    flush(file);
  } finally {
    closeSync(file);
  }
  renameSync(temporary, path);
  const directory = openSync(dirname(path), 'r');
  try {
    flush(directory);
  } finally {
    closeSync(directory);
  }
}
