import { readFile } from 'node:fs/promises';

/**
 * The text of a file, or `undefined` where there is none. A file that is there and cannot be read is an error: taken as absent, it would be
 * made anew.
 */
export function readOptional(path: string): Promise<string | undefined> {
  return readFile(path, 'utf8').catch((error: NodeJS.ErrnoException) => {
    if (error.code === 'ENOENT') return undefined;
    throw error;
  });
}
