import { spawn } from 'node:child_process';
import { mkdirSync, readdirSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { endProcess, readRecord } from '@platform/kernel/storage/process-record';
import type { WorkingCopy } from './working-copy.ts';

export type Outcome = 'passed' | 'failed' | 'out of time';

/** Runs test files of the copy, the first failure ends it. What a run that was killed has left running is ended. */
export async function runTests(
  { root, scratch }: WorkingCopy,
  tests: readonly string[],
  patienceMs: number,
  signal: AbortSignal,
): Promise<{ outcome: Outcome; ms: number; said: string }> {
  mkdirSync(scratch, { recursive: true });
  const began = performance.now();
  const vitest = spawn(
    process.execPath,
    [
      '--disable-warning=ExperimentalWarning',
      join(root, 'node_modules', 'vitest', 'vitest.mjs'),
      'run',
      '--bail=1',
      '--reporter=dot',
      ...tests,
    ],
    {
      cwd: root,
      env: { ...process.env, TMPDIR: scratch },
      stdio: ['ignore', 'pipe', 'pipe'],
      detached: true,
    },
  );
  let said = '';
  for (const stream of [vitest.stdout, vitest.stderr])
    stream.setEncoding('utf8').on('data', (text: string) => (said = (said + text).slice(-20_000)));
  const ended = new Promise<number | null>(resolve => vitest.once('exit', code => resolve(code)));
  const enough = new AbortController();
  const late = delay(patienceMs, 'late' as const, { signal: AbortSignal.any([signal, enough.signal]) }).catch(() => 'late' as const);
  const first = await Promise.race([ended, late]);
  if (first === 'late') {
    kill(vitest.pid, 'SIGTERM');
    await Promise.race([ended, delay(10_000)]);
    kill(vitest.pid, 'SIGKILL');
    await ended;
  }
  enough.abort();
  await endLeftovers(scratch);
  return { outcome: first === 'late' ? 'out of time' : first === 0 ? 'passed' : 'failed', ms: performance.now() - began, said };
}

function kill(pid: number | undefined, signal: NodeJS.Signals): void {
  try {
    if (pid !== undefined) process.kill(-pid, signal);
  } catch {
    // It ended by itself.
  }
}

/** Databases outlive the tests that started them, by design: each is found by the record that it left in its data directory. */
async function endLeftovers(scratch: string): Promise<void> {
  for (const name of readdirSync(scratch, { recursive: true, encoding: 'utf8' }).filter(path => /(^|\/)run\/(pg|kv)\.json$/.test(path))) {
    const record = readRecord(join(scratch, name));
    if (record) await endProcess(record, [['SIGKILL', 5_000]]).catch(() => undefined);
  }
  rmSync(scratch, { recursive: true, force: true, maxRetries: 5, retryDelay: 100 });
}
