import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { cpus, freemem, totalmem } from 'node:os';
import type { CompanionProcess, MachineUsage, ProcessId } from '@platform/sdk';
import { recordOf, startedBy, statFields } from '../../storage/process-record.ts';

/** What Linux counts in, on every machine Node has a build for. */
const TICK_MS = 10;
const PAGE_BYTES = 4_096;

/** CPU time and resident memory of a process, from /proc; none where it is gone, or on another system. */
export function processUsage(id: ProcessId): { cpu_ms: number; rss_bytes: number } | undefined {
  if (id.pid === process.pid) {
    const { user, system } = process.cpuUsage();
    return { cpu_ms: (user + system) / 1_000, rss_bytes: process.memoryUsage.rss() };
  }
  try {
    const fields = statFields(id.pid);
    if (startedBy(fields) !== id.started) return undefined;
    return { cpu_ms: (Number(fields[11]) + Number(fields[12])) * TICK_MS, rss_bytes: Number(fields[21]) * PAGE_BYTES };
  } catch {
    return undefined;
  }
}

/** What a process has started itself, and what that has; none where it is gone, or on a system that does not say. */
export function companionsOf(pid: number): CompanionProcess[] {
  return childrenOf(pid).flatMap(child => {
    const usage = processUsage(recordOf(child));
    return usage ? [{ pid: child, ...usage }, ...companionsOf(child)] : [];
  });
}

/** Each thread has children of its own. */
function childrenOf(pid: number): number[] {
  try {
    return readdirSync(`/proc/${pid}/task`).flatMap(thread =>
      readFileSync(`/proc/${pid}/task/${thread}/children`, 'latin1').split(' ').filter(Boolean).map(Number),
    );
  } catch {
    return [];
  }
}

interface CpuTimes {
  readonly busy: number;
  readonly total: number;
}

/** Load of the machine between two looks (SUP-073), or of its container where that is asked for (SUP-060). */
export class MachineLoad {
  #last: CpuTimes | undefined;
  #lastContainer: { readonly at: number; readonly usage_us: number } | undefined;
  #share = 0;
  readonly #root: string;
  readonly #now: () => number;

  constructor(root = '/sys/fs/cgroup', now: () => number = () => performance.now()) {
    this.#root = root;
    this.#now = now;
  }

  look(telemetry: 'host' | 'cgroup'): MachineUsage {
    return (telemetry === 'cgroup' ? this.#container() : undefined) ?? this.#host();
  }

  #host(): MachineUsage {
    const now = cpuTimes();
    if (this.#last && now.total > this.#last.total) this.#share = (now.busy - this.#last.busy) / (now.total - this.#last.total);
    this.#last = now;
    const total = totalmem();
    const used = total - available();
    return figures(this.#share, used, total);
  }

  /** Version 2 counts in one folder, version 1 in one for each kind. */
  #container(): MachineUsage | undefined {
    const read = (...names: readonly string[]) => {
      const path = names.map(name => `${this.#root}/${name}`).find(existsSync);
      return path === undefined ? undefined : readFileSync(path, 'utf8').trim();
    };
    const usage = /usage_usec (\d+)/.exec(read('cpu.stat') ?? '')?.[1];
    const nanoseconds = read('cpuacct/cpuacct.usage', 'cpu,cpuacct/cpuacct.usage');
    const used = read('memory.current', 'memory/memory.usage_in_bytes');
    const usage_us = usage !== undefined ? Number(usage) : nanoseconds !== undefined ? Number(nanoseconds) / 1_000 : undefined;
    if (used === undefined || usage_us === undefined) return undefined;
    const limit = Number(read('memory.max', 'memory/memory.limit_in_bytes'));
    const [quota, period] = (read('cpu.max') ?? '').split(' ').map(Number);
    const cores = quota && period ? quota / period : cpus().length;
    const at = this.#now();
    if (this.#lastContainer && at > this.#lastContainer.at)
      this.#share = (usage_us - this.#lastContainer.usage_us) / 1_000 / (at - this.#lastContainer.at) / cores;
    this.#lastContainer = { at, usage_us };
    return figures(this.#share, Number(used), limit > 0 && limit < totalmem() ? limit : totalmem());
  }
}

const figures = (share: number, used: number, total: number): MachineUsage => ({
  cpu_pct: Math.round(Math.min(1, Math.max(0, share)) * 1_000) / 10,
  mem_pct: Math.round((used / total) * 1_000) / 10,
  used_mb: Math.round(used / 1_048_576),
});

function cpuTimes(): CpuTimes {
  const all = cpus().map(({ times }) => times);
  const total = all.reduce((sum, { user, nice, sys, idle, irq }) => sum + user + nice + sys + idle + irq, 0);
  return { total, busy: total - all.reduce((sum, { idle }) => sum + idle, 0) };
}

/** What programs can still have: caches are given back when they are needed. */
function available(): number {
  try {
    return Number(/MemAvailable:\s+(\d+)/.exec(readFileSync('/proc/meminfo', 'utf8'))?.[1]) * 1_024;
  } catch {
    return freemem();
  }
}
