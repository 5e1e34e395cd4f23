import { execFileSync } from 'node:child_process';
import { readFileSync, renameSync, writeFileSync } from 'node:fs';
import { setTimeout as delay } from 'node:timers/promises';

/** Who a process is: a pid alone is reused, a pid together with its start time is not. */
export interface ProcessRecord {
  readonly pid: number;
  readonly started: string;
}

/** When `pid` started, in a spelling that only compares; `null` when it is gone or a zombie. */
export function startedAt(pid: number): string | null {
  if (!Number.isSafeInteger(pid) || pid <= 1) return null;
  try {
    if (process.platform !== 'linux') {
      const line = execFileSync('ps', ['-o', 'stat=,lstart=', '-p', String(pid)], {
        encoding: 'utf8',
        stdio: ['ignore', 'pipe', 'ignore'],
      }).trim();
      return line === '' || line.startsWith('Z') ? null : line.replace(/^\S+\s+/, '');
    }
    return startedBy(statFields(pid));
  } catch {
    return null;
  }
}

const STAT_FIELDS = 22;
let bootId: string | undefined;

/**
 * What Linux says of a process in `/proc/{pid}/stat`, from its state on. The command name may hold spaces and brackets; fields are counted
 * from behind its last bracket. Throws where there is none.
 */
export function statFields(pid: number): readonly string[] {
  const stat = readFileSync(`/proc/${pid}/stat`, 'latin1');
  return stat.slice(stat.lastIndexOf(')') + 2).split(' ', STAT_FIELDS);
}

/** When the process of these fields started; `null` for a zombie. The name of this boot is read once: it outlives every process. */
export function startedBy(fields: readonly string[]): string | null {
  if (fields[0] === 'Z' || fields[0] === 'X') return null;
  bootId ??= readFileSync('/proc/sys/kernel/random/boot_id', 'utf8').trim();
  return `${bootId}:${fields[19]}`;
}

/** True while exactly the recorded process runs. */
export function isAlive(record: ProcessRecord): boolean {
  return startedAt(record.pid) === record.started;
}

/** The record of a process that was just spawned. */
export function recordOf(pid: number): ProcessRecord {
  return { pid, started: startedAt(pid) ?? 'gone' };
}

/** Reads what {@link writeRecord} wrote; `null` for a missing or foreign file. */
export function readRecord<T extends ProcessRecord>(file: string): T | null {
  try {
    const value = JSON.parse(readFileSync(file, 'utf8')) as Partial<T>;
    return typeof value.pid === 'number' && typeof value.started === 'string' ? (value as T) : null;
  } catch {
    return null;
  }
}

/** Replaces the record atomically, so that a reader after a crash sees the old or the new one. */
export function writeRecord(file: string, record: ProcessRecord): void {
  writeFileSync(`${file}.new`, JSON.stringify(record), { mode: 0o600 });
  renameSync(`${file}.new`, file);
}

/** Sends the signals one after the other, each with its patience, until the process is gone. */
export async function endProcess(record: ProcessRecord, steps: readonly (readonly [NodeJS.Signals, number])[]): Promise<void> {
  for (const [signal, patienceMs] of steps) {
    if (!isAlive(record)) return;
    try {
      process.kill(record.pid, signal);
    } catch {
      return;
    }
    const deadline = performance.now() + patienceMs;
    while (isAlive(record) && performance.now() < deadline) await delay(10);
  }
  if (isAlive(record)) throw new Error(`process ${record.pid} does not end`);
}
