import { existsSync, mkdirSync, readFileSync, writeFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { isAlive, type ProcessRecord, recordOf } from '../storage/process-record.ts';

/** One host per data directory: a second one would adopt the first one's databases. A record whose process is gone is taken over. */
export function lockDataDir(dataDir: string): void {
  const path = join(dataDir, 'run', 'host.json');
  mkdirSync(join(dataDir, 'run'), { recursive: true, mode: 0o711 });
  if (existsSync(path)) {
    const held = readRecordFile(path);
    if (held && held.pid !== process.pid && isAlive(held)) throw new Error(`Another platform (process ${held.pid}) runs on ${dataDir}. Stop it, or set PLATFORM_DATA_DIR.`);
  }
  writeFileSync(path, JSON.stringify(recordOf(process.pid)), { mode: 0o600 });
  process.once('exit', () => rmSync(path, { force: true }));
}

/** Whether a host runs on this data directory. */
export function isRunning(dataDir: string): boolean {
  const held = readRecordFile(join(dataDir, 'run', 'host.json'));
  return held !== undefined && isAlive(held);
}

function readRecordFile(path: string): ProcessRecord | undefined {
  try {
    return JSON.parse(readFileSync(path, 'utf8')) as ProcessRecord;
  } catch {
    return undefined;
  }
}
