import { existsSync, mkdirSync, rmSync, statSync, utimesSync } from 'node:fs';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { isAlive, readRecord, recordOf, writeRecord } from '../../storage/process-record.ts';

const recordIn = (dataDir: string) => join(dataDir, 'run', 'host.json');

/**
 * One host per data directory: a second one would adopt the first one's databases. The lock is the operating system's, taken through
 * SQLite, which is the way Node has to it: it is given to one process and gone with it, so nothing stale is ever judged. The record beside
 * it only tells who. Held as long as the answer is kept.
 */
export function lockDataDir(dataDir: string): Disposable {
  mkdirSync(join(dataDir, 'run'), { recursive: true, mode: 0o711 });
  // Who can read the file could hold it against us.
  const umask = process.umask(0o077);
  const file = new DatabaseSync(join(dataDir, 'run', 'host.lock'), { timeout: 0 });
  try {
    file.exec('pragma locking_mode = exclusive; begin exclusive');
  } catch (error) {
    file.close();
    if ((error as { errcode?: number }).errcode !== SQLITE_BUSY) throw error;
    const holder = readRecord(recordIn(dataDir));
    throw new Error(
      `Another platform${
        holder && isAlive(holder) ? ` (process ${holder.pid})` : ''
      } runs on ${dataDir}. Stop it, or set PLATFORM_DATA_DIR.`,
    );
  } finally {
    process.umask(umask);
  }
  writeRecord(recordIn(dataDir), recordOf(process.pid));
  const beat = setInterval(() => touch(recordIn(dataDir)), BEAT_MS);
  beat.unref();
  return {
    [Symbol.dispose]: () => {
      clearInterval(beat);
      if (!file.isOpen) return;
      rmSync(recordIn(dataDir), { force: true });
      file.close();
    },
  };
}

const SQLITE_BUSY = 5;
const BEAT_MS = 2_000;
const SILENT_MS = 10_000;

function touch(path: string): void {
  const now = new Date();
  try {
    utimesSync(path, now, now);
  } catch {
    // The folder is being taken away.
  }
}

/**
 * Whether a host says that it lives, to a process that may look at nothing but this one file: it is touched every two seconds. `undefined`
 * where the folder is gone.
 */
export function hostBeats(dataDir: string): boolean | undefined {
  const stat = statSync(recordIn(dataDir), { throwIfNoEntry: false });
  if (stat) return Date.now() - stat.mtimeMs < SILENT_MS;
  return existsSync(join(dataDir, 'run')) ? false : undefined;
}

/** The file a process may look at for that. */
export const hostRecord = recordIn;

/** Whether a host runs on this data directory. */
export function isRunning(dataDir: string): boolean {
  const held = readRecord(recordIn(dataDir));
  return held !== null && isAlive(held);
}
