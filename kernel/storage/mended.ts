import { registerHooks } from 'node:module';

/** A passage of a package's file, and what is read in its place. */
export interface Mend {
  /** How the file's address ends. */
  readonly file: string;
  readonly from: string;
  readonly to: string;
}

/**
 * Loads a package with passages of its files replaced. A release that reads otherwise is left as it is, which a test of each mend says; so is
 * a package that was loaded before, which the import law prevents.
 */
export async function mended<Module>(load: () => Promise<Module>, mends: readonly Mend[]): Promise<Module> {
  const hooks = registerHooks({
    load(url, context, next) {
      const loaded = next(url, context);
      const here = mends.filter(({ file }) => url.endsWith(file));
      if (here.length === 0 || !loaded.source) return loaded;
      const read = typeof loaded.source === 'string' ? loaded.source : Buffer.from(loaded.source as Uint8Array).toString('utf8');
      return { ...loaded, source: here.reduce((text, { from, to }) => text.replace(from, to), read) };
    },
  });
  try {
    return await load();
  } finally {
    hooks.deregister();
  }
}
