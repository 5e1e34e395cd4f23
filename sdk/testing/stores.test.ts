import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, readFileSync } from 'node:fs';
import { createInterface } from 'node:readline';
import { expect, test } from 'vitest';

const PROGRAM = `
  const { openTestStores } = await import('@platform/testing');
  const { dataDir } = await openTestStores();
  console.log(dataDir);
  setInterval(() => {}, 60_000);`;

const alive = (pid: number): boolean => {
  try {
    return process.kill(pid, 0);
  } catch {
    return false;
  }
};

test.each(['SIGINT', 'SIGTERM'] as const)(
  'a program that is ended by %s takes its servers and their folder along',
  { timeout: 60_000 },
  async signal => {
    const program = spawn(process.execPath, ['--disable-warning=ExperimentalWarning', '--input-type=module', '--eval', PROGRAM], {
      cwd: import.meta.dirname,
      stdio: ['ignore', 'pipe', 'ignore'],
    });
    try {
      const [dataDir] = (await once(createInterface(program.stdout), 'line')) as [string];
      const postmaster = Number(readFileSync(`${dataDir}/pg/postmaster.pid`, 'utf8').split('\n')[0]);
      expect(alive(postmaster)).toBe(true);
      program.kill(signal);
      expect(await once(program, 'exit')).toEqual([null, signal]);
      expect(alive(postmaster)).toBe(false);
      expect(existsSync(dataDir)).toBe(false);
    } finally {
      program.kill('SIGKILL');
    }
  },
);
