import { existsSync, readdirSync } from 'node:fs';
import { basename, join, relative } from 'node:path';
import { fileURLToPath } from 'node:url';

const ROOT = fileURLToPath(new URL('../../../', import.meta.url));
const NAME = /^[a-zA-Z0-9][a-zA-Z0-9._-]{0,63}$/;

/** Named releases of the platform's code, each a folder as `platform release` packs it. */
export class Releases {
  readonly #directory: string | undefined;

  constructor(directory: string | undefined) {
    this.#directory = directory;
  }

  names(): readonly string[] {
    if (this.#directory === undefined || !existsSync(this.#directory)) return [];
    return readdirSync(this.#directory)
      .filter(name => NAME.test(name) && existsSync(this.#main(name)))
      .sort();
  }

  /** Where the code of a release lies; a vertical's folder is found in it by its name. Throws where there is none. */
  codeOf(release: string, directory: string): { main: string; directory: string } {
    if (!this.names().includes(release))
      throw new Error(`there is no release '${release}'; known are ${this.names().join(', ') || '(none)'}`);
    const home = join(this.#directory as string, release);
    const inside = relative(ROOT, directory);
    const candidates = [join(home, inside.startsWith('..') ? join('verticals', basename(directory)) : inside)];
    const found = candidates.find(existsSync);
    if (found === undefined) throw new Error(`the release '${release}' has no ${basename(directory)}`);
    return { main: this.#main(release), directory: found };
  }

  #main(release: string): string {
    return join(this.#directory as string, release, 'kernel', 'child.ts');
  }
}
