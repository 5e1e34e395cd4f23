import { readFileSync, readlinkSync, realpathSync } from 'node:fs';
import { join } from 'node:path';
import { isAlive, type ProcessRecord, readRecord, recordOf } from '../../process-record.ts';

/** A running PostgreSQL of one data directory, as its own lock file tells. */
export interface Postmaster extends ProcessRecord {
  readonly port: number;
  readonly socketDirectory: string;
  readonly ready: boolean;
}

/**
 * The postmaster that serves `home`, or `null`. Its lock file alone is no proof after a crash, when the pid may be somebody else's:
 * it must be the process we recorded when we spawned it, or have `home` as its working directory.
 */
export function findPostmaster(home: string, recordFile: string): Postmaster | null {
  let lines: string[];
  try {
    lines = readFileSync(join(home, 'postmaster.pid'), 'utf8').split('\n');
  } catch {
    return null;
  }
  const found = recordOf(Number(lines[0]));
  if (!isAlive(found)) return null;
  const recorded = readRecord(recordFile);
  if (!(recorded?.pid === found.pid && recorded.started === found.started) && !worksIn(found.pid, home)) return null;
  return { ...found, port: Number(lines[3]), socketDirectory: lines[4]?.trim() ?? '', ready: lines[7]?.trim() === 'ready' };
}

function worksIn(pid: number, home: string): boolean {
  try {
    return readlinkSync(`/proc/${pid}/cwd`) === realpathSync(home);
  } catch {
    return false;
  }
}
