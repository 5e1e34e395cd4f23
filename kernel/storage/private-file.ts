import { randomBytes } from 'node:crypto';
import { existsSync, linkSync, mkdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { dirname } from 'node:path';

/**
 * Replaces a file of mode 0600 in one step; `prepare` sees it before it takes the name. A new name and `wx` follow no link somebody left.
 */
export function writePrivateFile(path: string, text: string, prepare: (file: string) => void = () => {}): void {
  const file = `${path}.${randomBytes(6).toString('hex')}`;
  try {
    writeFileSync(file, text, { mode: 0o600, flag: 'wx', flush: true });
    prepare(file);
    renameSync(file, path);
  } catch (error) {
    rmSync(file, { force: true });
    throw error;
  }
}

/** The secret kept in `path`, made on first use. Of two processes that make it at once, one wins and both read the same. */
export function readOrCreateSecret(path: string, make: () => string = () => randomBytes(32).toString('base64url')): string {
  mkdirSync(dirname(path), { recursive: true, mode: 0o700 });
  const file = `${path}.${randomBytes(6).toString('hex')}`;
  try {
    if (!existsSync(path)) {
      writeFileSync(file, make(), { mode: 0o600, flag: 'wx', flush: true });
      linkSync(file, path); // unlike a rename, fails when somebody was first
    }
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error;
  } finally {
    rmSync(file, { force: true });
  }
  return readFileSync(path, 'utf8').trim();
}
