import { createHash } from 'node:crypto';
import { chmodSync, lchownSync, mkdirSync, readdirSync, statSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { canReach } from '../../storage/can-reach.ts';

/** User ids that systems keep for services without an account of their own (systemd: DynamicUser). */
const [FIRST, LAST] = [61_184, 65_519];

export interface VerticalAccount {
  readonly uid: number;
  readonly gid: number;
}

/**
 * The user of the operating system that a vertical's process runs as (F-04): one for each service, without a name and without rights, where
 * the platform runs as root and that user can read what the process needs. Elsewhere nothing: it runs as the platform does. Two services
 * that come to the same number share it; the permission model still keeps them apart.
 */
export function verticalAccount(service: string, needed: readonly string[]): VerticalAccount | undefined {
  if (process.getuid?.() !== 0) return undefined;
  const id = FIRST + (createHash('sha256').update(service).digest().readUInt32BE() % (LAST - FIRST + 1));
  const account = { uid: id, gid: id };
  return needed.every(path => canReach(path, account)) ? account : undefined;
}

/** Gives a service's folder to the user that its process runs as; that user may not see what lies beside it. */
export function giveHome(home: string, folders: readonly string[], account: VerticalAccount | undefined): void {
  mkdirSync(dirname(home), { recursive: true, mode: 0o711 });
  for (const folder of folders) mkdirSync(join(home, folder), { recursive: true, mode: 0o700 });
  if (process.getuid?.() !== 0) return;
  const { uid, gid } = account ?? { uid: 0, gid: 0 };
  if (account) chmodSync(dirname(home), 0o711);
  if (statSync(home).uid !== uid) hand(home, uid, gid);
}

/** Never through a link: what it leads to is not the service's. */
function hand(path: string, uid: number, gid: number): void {
  for (const entry of readdirSync(path, { withFileTypes: true })) {
    const at = join(path, entry.name);
    if (entry.isDirectory()) hand(at, uid, gid);
    else lchownSync(at, uid, gid);
  }
  lchownSync(path, uid, gid);
}
