import { execFileSync } from 'node:child_process';
import { existsSync, mkdirSync, mkdtempSync, readdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

/** Another program that keeps a process alive. */
export interface SupervisorPeer extends AsyncDisposable {
  /** Puts the next process in the place of the one that runs, as its manual says. */
  reload(): Promise<void>;
}

/** Supervises the small server on a port, from its start on. Throws with the reason where it is not to be had on this machine. */
export type StartPeer = (port: number) => Promise<SupervisorPeer>;

export const SMALL_SERVER = fileURLToPath(new URL('./small-server.mjs', import.meta.url));
const DIRECTORY = fileURLToPath(new URL('../../../../.data/bench-peers/debian/', import.meta.url));

export const scratchFolder = (): { readonly path: string } & Disposable => {
  const path = mkdtempSync(join(tmpdir(), 'bench-peer-'));
  return { path, [Symbol.dispose]: () => rmSync(path, { recursive: true, force: true }) };
};

/** Unpacks Debian packages where only the bench sees them; nothing of the machine is changed. Answers the folder they stand in. */
export function debianPackages(...names: readonly string[]): string {
  const folder = join(DIRECTORY, names[0] as string);
  if (existsSync(join(folder, 'usr'))) return folder;
  using scratch = scratchFolder();
  const quiet = { cwd: scratch.path, stdio: ['ignore', 'ignore', 'pipe'] as ['ignore', 'ignore', 'pipe'] };
  execFileSync('apt-get', ['download', ...names], quiet);
  mkdirSync(folder, { recursive: true });
  for (const file of readdirSync(scratch.path)) execFileSync('dpkg-deb', ['-x', file, folder], quiet);
  return folder;
}
