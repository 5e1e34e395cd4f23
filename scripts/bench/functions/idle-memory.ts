import { readdirSync, readFileSync } from 'node:fs';
import { setTimeout as delay } from 'node:timers/promises';
import { Platform } from '../../../e2e/fixtures/platform.ts';
import { GuestPool } from '../../../plugins/functions/src/isolation/guest-pool.ts';
import { ECHO, metered } from '../../../plugins/functions/test/fixtures/guests.ts';
import { type HeldMemory, memoryOf } from '../load/held-memory.ts';
import type { Row } from '../row.ts';

const IDLE_MS = 15_000;
const EXECUTIONS = 1_000;
const MB = 1_000;
const PAGES = 1_024;

/**
 * What the service's process holds as the supervisor starts it, and two processes for guests beside it after some executions, all of them
 * idle.
 */
export async function* memoryRows(): AsyncGenerator<Row> {
  await using platform = new Platform({ split: true, pluginDirs: '' });
  await platform.start();
  await using pool = new GuestPool({ processes: 2, pages: PAGES, heapMb: 128, log: () => undefined });
  const bytes = metered(ECHO, PAGES);
  const execution = {
    module: 'echo',
    program: { kind: 'core', bytes } as const,
    hook: 'hook',
    input: Buffer.from('{}'),
    fuel: 1_000_000,
    timeoutMs: 5_000,
    maxOutput: 1_000,
    maxCalls: 1,
    pages: PAGES,
  };
  for (let left = EXECUTIONS; left > 0; left -= 10)
    await Promise.all(Array.from({ length: 10 }, () => pool.run({ ...execution, call: async () => ({ fuel: 0 }) })));
  await delay(IDLE_MS);
  const processes = [serviceProcess(), ...pool.pids.map(String)].map(memoryOf);
  const sum = (of: 'own' | 'shared') => processes.reduce((total, each) => total + each[of], 0);
  const value = (sum('own') + Math.max(...processes.map(({ shared }) => shared))) / MB;
  const note = `own pages of the service ${Math.round((processes[0] as HeldMemory).own / MB)} MB and of the children ${processes
    .slice(1)
    .map(({ own }) => Math.round(own / MB))
    .join(' and ')} MB, shared pages once; resident sets added up ${Math.round((sum('own') + sum('shared')) / MB)} MB`;
  yield { name: 'idle memory of the service with two children', value, unit: 'MB', limit: 180, note };
}

/** The process that the supervisor started for the service last. */
function serviceProcess(): string {
  const found = readdirSync('/proc')
    .filter(name => /^\d+$/.test(name))
    .filter(pid => {
      try {
        return readFileSync(`/proc/${pid}/cmdline`, 'utf8').includes('\0--only\0func\0');
      } catch {
        // It ended meanwhile.
        return false;
      }
    })
    .sort((left, right) => Number(right) - Number(left));
  if (!found[0]) throw new Error('the service has no process');
  return found[0];
}
