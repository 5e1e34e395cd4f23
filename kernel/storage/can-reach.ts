import { statSync } from 'node:fs';
import { dirname } from 'node:path';

/** Whether a user may walk to `path` and read or enter it. */
export function canReach(path: string, { uid, gid }: { readonly uid: number; readonly gid: number }): boolean {
  for (let at = path, leaf = true; ; at = dirname(at), leaf = false) {
    const stat = statSync(at, { throwIfNoEntry: false });
    if (stat === undefined) return false;
    const shift = stat.uid === uid ? 6 : stat.gid === gid ? 3 : 0;
    const wanted = leaf && !stat.isDirectory() ? 0b100 : 0b001;
    if (((stat.mode >> shift) & wanted) !== wanted) return false;
    if (at === dirname(at)) return true;
  }
}
