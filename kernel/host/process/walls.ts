import { existsSync, lstatSync, readdirSync, realpathSync } from 'node:fs';
import { dirname, join, sep } from 'node:path';
import { fileURLToPath } from 'node:url';

const ROOT = fileURLToPath(new URL('../../../', import.meta.url));
/** A heap may be so large unless the contract says otherwise. */
const HEAP_MB = 512;
const MAX_ENTRIES = 50_000;
/** What a process may know of itself; nothing below a link that leads elsewhere. */
const OWN_FIGURES = ['stat', 'statm', 'status', 'limits'].map(name => `/proc/self/${name}`);

/**
 * The walls around somebody else's code (F-04; day two, section 3): Node's permission model, with the platform's own code, the plugin's
 * folder and what is named further to read, its folder to write, the network, and nothing else: no processes, no workers, no addons, no
 * libraries.
 */
export function wallFlags({
  directory,
  read = [],
  write = [],
  memoryMb = HEAP_MB,
}: {
  directory: string;
  read?: readonly string[];
  write?: readonly string[];
  memoryMb?: number | undefined;
}): string[] {
  const folder = realpathSync(directory);
  refuseWaysOut(folder);
  const code = ['kernel', 'sdk', 'catalog/generated/contracts.ts', 'node_modules', 'package.json', ...contracts()].map(name =>
    join(ROOT, name),
  );
  const packages = packageFiles(folder);
  return [
    '--permission',
    '--allow-net',
    ...[...code, folder, directory, ...packages, ...OWN_FIGURES, ...read, ...write].map(path => `--allow-fs-read=${path}`),
    ...write.map(path => `--allow-fs-write=${path}`),
    `--max-old-space-size=${memoryMb}`,
  ];
}

/** The permission model follows links: one that leads out of the folder would be a door (Node's documentation of it says so). */
function refuseWaysOut(folder: string): void {
  const allowed = [folder, join(ROOT, 'node_modules'), join(ROOT, 'sdk')].map(path => path + sep);
  let seen = 0;
  const walk = (path: string) => {
    for (const name of readdirSync(path)) {
      const at = join(path, name);
      if (++seen > MAX_ENTRIES) throw new Error(`${folder} holds more than ${MAX_ENTRIES} files; a plugin's folder holds the plugin alone`);
      const stat = lstatSync(at);
      if (stat.isDirectory()) walk(at);
      if (!stat.isSymbolicLink()) continue;
      const target = existsSync(at) ? realpathSync(at) : undefined;
      if (target === undefined || !allowed.some(each => `${target}${sep}`.startsWith(each)))
        throw new Error(`${at} is a link that leads out of the plugin's folder; copy what it needs into the folder`);
    }
  };
  walk(folder);
}

/** What services say of themselves is for everybody: the published contracts lead there. */
const contracts = (): string[] =>
  readdirSync(join(ROOT, 'plugins')).flatMap(name => [`plugins/${name}/contract`, `plugins/${name}/package.json`]);

/** Node looks for a package.json beside and above every module. */
function packageFiles(folder: string): string[] {
  const files: string[] = [];
  for (let at = dirname(folder); at !== dirname(at); at = dirname(at)) files.push(join(at, 'package.json'));
  return files;
}
