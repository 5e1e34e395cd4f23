import { createHash } from 'node:crypto';
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

const ROOT = fileURLToPath(new URL('../../../', import.meta.url));

let knownBuild: string | undefined;
/** Which code runs: the commit where there is one, else a hash of the lock file. `fresh`: which code lies on the disk now. */
export function buildHash({ fresh = false } = {}): string {
  if (fresh) return readBuild();
  knownBuild ??= readBuild();
  return knownBuild;
}
function readBuild(): string {
  return (
    releaseOf(join(ROOT, 'RELEASE')) ??
    commitOf(join(ROOT, '.git')) ??
    createHash('sha256')
      .update(readFileSync(join(ROOT, 'package.json')))
      .digest('hex')
      .slice(0, 12)
  );
}
/** What `platform release` wrote into a release it packed. */
function releaseOf(path: string): string | undefined {
  return existsSync(path) ? readFileSync(path, 'utf8').trim() || undefined : undefined;
}
function commitOf(git: string): string | undefined {
  try {
    const head = readFileSync(join(git, 'HEAD'), 'utf8').trim();
    const reference = head.startsWith('ref: ') ? head.slice(5) : undefined;
    return (reference ? readFileSync(join(git, reference), 'utf8') : head).trim().slice(0, 12);
  } catch {
    return undefined;
  }
}
