import { type ChildProcess, spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdirSync, mkdtempSync, readdirSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { afterAll, describe, expect, test } from 'vitest';
import { isRunning, lockDataDir } from './data-dir-lock.ts';

const root = mkdtempSync(join(tmpdir(), 'platform-test-'));
const CONTENDER = fileURLToPath(new URL('../fixtures/lock-contender.ts', import.meta.url));
const MAIN = fileURLToPath(new URL('../../main.ts', import.meta.url));
const FLAGS = ['--disable-warning=ExperimentalWarning'];
const alive = new Set<ChildProcess>();
afterAll(() => {
  for (const child of alive) child.kill('SIGKILL');
  rmSync(root, { recursive: true, force: true });
});

class Contender {
  readonly process;
  readonly #lines: AsyncIterator<string>;
  private constructor(dataDir: string) {
    this.process = spawn(process.execPath, [...FLAGS, CONTENDER, dataDir], { stdio: ['pipe', 'pipe', 'inherit'] });
    this.#lines = createInterface({ input: this.process.stdout })[Symbol.asyncIterator]();
    alive.add(this.process);
  }
  static async there(dataDir: string): Promise<Contender> {
    const contender = new Contender(dataDir);
    await contender.says();
    return contender;
  }
  async says(): Promise<string> {
    return String((await this.#lines.next()).value);
  }
  async end(how: 'leaves' | 'killed'): Promise<void> {
    const gone = once(this.process, 'exit');
    if (how === 'killed') this.process.kill('SIGKILL');
    else this.process.stdin.end();
    await gone;
    alive.delete(this.process);
  }
}

describe('the lock of a data directory', () => {
  test('F-09 of many processes that start at once on what a killed host left, exactly one holds it', async () => {
    const dataDir = join(root, 'race');
    for (const round of [0, 1, 2]) {
      const contenders = await Promise.all(Array.from({ length: 8 }, () => Contender.there(dataDir)));
      for (const { process } of contenders) process.stdin.write('go\n');
      const said = await Promise.all(contenders.map(contender => contender.says()));
      expect([
        round,
        said.filter(line => line === 'held').length,
        said.filter(line => line.startsWith('refused Another platform')).length,
      ]).toEqual([round, 1, 7]);
      const holder = contenders[said.indexOf('held')] as Contender;
      expect(isRunning(dataDir)).toBe(true);
      // Killed, it leaves its record behind, for the next round to take over.
      await Promise.all(contenders.map(contender => contender.end(contender === holder ? 'killed' : 'leaves')));
      expect([existsSync(join(dataDir, 'run', 'host.json')), isRunning(dataDir)]).toEqual([true, false]);
    }
  });

  test('F-09 is free again after an orderly stop, and is not held twice by one process', () => {
    const dataDir = join(root, 'orderly');
    const lock = lockDataDir(dataDir);
    expect(() => lockDataDir(dataDir)).toThrow(`(process ${process.pid})`);
    lock[Symbol.dispose]();
    expect(isRunning(dataDir)).toBe(false);
    lockDataDir(dataDir)[Symbol.dispose]();
  });

  test('F-09 is in a file that nobody else can hold against us, and leaves the process’s own umask as it was', () => {
    const dataDir = join(root, 'private');
    const before = process.umask();
    const lock = lockDataDir(dataDir);
    expect([statSync(join(dataDir, 'run', 'host.lock')).mode & 0o777, process.umask()]).toEqual([0o600, before]);
    rmSync(join(dataDir, 'run', 'host.json'));
    lock[Symbol.dispose]();
    expect(isRunning(dataDir)).toBe(false);
  });

  test('F-09 that cannot be looked at is no other platform', () => {
    const dataDir = join(root, 'odd');
    mkdirSync(join(dataDir, 'run'), { recursive: true });
    writeFileSync(join(dataDir, 'run', 'host.lock'), 'no file of ours, but one of somebody else');
    expect(() => lockDataDir(dataDir)).toThrow(/^(?!Another platform)/);
  });

  test('F-09 is not given for a record that names a living process which holds nothing', () => {
    const dataDir = join(root, 'reused');
    mkdirSync(join(dataDir, 'run'), { recursive: true });
    writeFileSync(join(dataDir, 'run', 'host.json'), JSON.stringify({ pid: process.pid, started: 'another time' }));
    using lock = lockDataDir(dataDir);
    expect([lock !== undefined, isRunning(dataDir)]).toEqual([true, true]);
  });

  test('F-15 a second host on the same data directory is refused, and makes nothing there', () => {
    const dataDir = join(root, 'second');
    using _ = lockDataDir(dataDir);
    const second = spawnSync(process.execPath, [...FLAGS, MAIN, 'run'], {
      encoding: 'utf8',
      env: { PATH: process.env['PATH'], PLATFORM_DATA_DIR: dataDir, PLATFORM_PROXY_HTTPS_PORT: '0' },
    });
    expect([second.status, second.stderr]).toEqual([
      1,
      expect.stringContaining(`Another platform (process ${process.pid}) runs on ${dataDir}. Stop it, or set PLATFORM_DATA_DIR.`),
    ]);
    expect(readdirSync(dataDir)).toEqual(['run']);
  });
});
