import { execFile } from 'node:child_process';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';

const FOLDER = dirname(fileURLToPath(import.meta.url));
/** Each after those that it imports. */
const FILES = ['component-program.mts', 'core-program.mts', 'guest.mts', 'guest-process.mts'];
const ENTRY = 'guest-process.mts';

/**
 * Takes the types out of the files named, in a process that ends with it: what does that is four megabytes of compiler, which every guest's
 * process would hold from its first file on.
 */
const STRIP = `
import { readFileSync } from 'node:fs';
import { stripTypeScriptTypes } from 'node:module';
process.stdout.write(JSON.stringify(process.argv.slice(1).map(path => stripTypeScriptTypes(readFileSync(path, 'utf8')))));`;

let made: Promise<string> | undefined;

/** The program of a guest's process, which needs no file: nothing has to be readable behind its walls. Made once for this process. */
export function guestCode(): Promise<string> {
  made ??= linked().catch(error => {
    made = undefined;
    throw error;
  });
  return made;
}

async function linked(): Promise<string> {
  const { stdout } = await promisify(execFile)(
    process.execPath,
    ['--disable-warning=ExperimentalWarning', '--input-type=module', '-e', STRIP, '--', ...FILES.map(name => join(FOLDER, name))],
    { env: {}, maxBuffer: 1_048_576 },
  );
  const addresses = new Map<string, string>();
  for (const [at, text] of (JSON.parse(stdout) as string[]).entries()) {
    const code = text.replaceAll(/from '\.\/([\w-]+\.mts)'/g, (_, name: string) => `from '${addresses.get(name)}'`);
    addresses.set(FILES[at] as string, `data:text/javascript;base64,${Buffer.from(code).toString('base64')}`);
  }
  return `import '${addresses.get(ENTRY)}';`;
}
