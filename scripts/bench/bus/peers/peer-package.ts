import { execFileSync } from 'node:child_process';
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

const DIRECTORY = fileURLToPath(new URL('../../../../.data/bench-peers/', import.meta.url));

/** Installs what only the bench needs, into the data directory: nobody who uses or tests the platform pays for it. */
export function peerPackage(name: string, version: string): { load<T>(): T; readonly directory: string } {
  const directory = join(DIRECTORY, 'node_modules', name);
  const manifest = join(directory, 'package.json');
  if (!existsSync(manifest) || (JSON.parse(readFileSync(manifest, 'utf8')) as { version: string }).version !== version) {
    mkdirSync(DIRECTORY, { recursive: true });
    if (!existsSync(join(DIRECTORY, 'package.json'))) writeFileSync(join(DIRECTORY, 'package.json'), '{"private":true}');
    execFileSync('npm', ['install', '--prefix', DIRECTORY, '--no-audit', '--no-fund', '--loglevel=error', `${name}@${version}`], {
      stdio: ['ignore', 'ignore', 'inherit'],
    });
  }
  return { load: <T>() => createRequire(join(dirname(manifest), 'index.js'))(name) as T, directory };
}
