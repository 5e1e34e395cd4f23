import {
  copyFileSync,
  cpSync,
  existsSync,
  linkSync,
  lstatSync,
  mkdirSync,
  readdirSync,
  readlinkSync,
  renameSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { fleetCommand } from './fleet-command.ts';

const ROOT = fileURLToPath(new URL('../../../../', import.meta.url));
const NAME = /^[a-zA-Z0-9][a-zA-Z0-9._-]{0,63}$/;
/** What runs, and nothing that only tests or builds. */
const PARTS = ['kernel', 'sdk', 'plugins', 'catalog', 'patches', 'console/dist', 'signin', 'scripts', 'package.json', 'package-lock.json'];
const LEFT_OUT = /(^|\/)(test|fixtures|node_modules)(\/|$)|\.test\.tsx?$/;

export default {
  ...fleetCommand(
    `platform release NAME [--dir DIR] [--json]

  Packs the code on disk as a release that services can be upgraded to: platform upgrade SERVICE --release NAME.
  It lies in PLATFORM_RELEASES_DIR, or where --dir says. Packages are linked, not copied, where the file system can.`,
    { dir: { type: 'string' } },
    [1, 1],
    async ({ words: [name = ''], options }) => {
      const directory = (options['dir'] as string | undefined) ?? process.env['PLATFORM_RELEASES_DIR'];
      if (!directory) throw new Error('Set PLATFORM_RELEASES_DIR, or say --dir DIR: a release needs a place.');
      const path = pack(name, directory);
      return { value: { name, path }, lines: [`${name} lies in ${path}`] };
    },
  ),
  offline: true,
};

/** Packs beside its place and moves it there when it is whole. A release never changes: a name is used once. */
export function pack(name: string, directory: string, root = ROOT): string {
  if (!NAME.test(name)) throw new Error(`'${name}' is no name of a release: use letters, digits, full stops, hyphens and underscores.`);
  const path = join(directory, name);
  if (existsSync(path)) throw new Error(`There is a release '${name}' already, and a release never changes.`);
  const staging = join(directory, `.${name}.${process.pid}`);
  try {
    mkdirSync(staging, { recursive: true });
    for (const part of PARTS.filter(each => existsSync(join(root, each))))
      cpSync(join(root, part), join(staging, part), { recursive: true, filter: from => !LEFT_OUT.test(from.slice(root.length)) });
    linkTree(join(root, 'node_modules'), join(staging, 'node_modules'));
    writeFileSync(join(staging, 'RELEASE'), `${name}\n`);
    renameSync(staging, path);
    return path;
  } catch (error) {
    rmSync(staging, { recursive: true, force: true });
    throw error;
  }
}

/** The same files under another folder, without their bytes: packages do not change once they are installed. */
function linkTree(from: string, to: string): void {
  mkdirSync(to, { recursive: true });
  for (const entry of readdirSync(from)) {
    const [source, target] = [join(from, entry), join(to, entry)];
    const stat = lstatSync(source);
    // Links to the platform's own packages are relative: in the release they lead to the release.
    if (stat.isSymbolicLink()) symlinkSync(readlinkSync(source), target);
    else if (stat.isDirectory()) linkTree(source, target);
    else {
      try {
        linkSync(source, target);
      } catch {
        copyFileSync(source, target);
      }
    }
  }
}
