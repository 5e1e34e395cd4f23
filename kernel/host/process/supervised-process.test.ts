import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import { afterEach, describe, expect, test } from 'vitest';
import { eventually } from '../../storage/fixtures/eventually.ts';
import { startedAt } from '../../storage/process-record.ts';
import type { LifeSettings } from './process-life.ts';
import { SupervisedProcess } from './supervised-process.ts';

const CHILD = fileURLToPath(new URL('../fixtures/supervised-child.ts', import.meta.url));
const FAST = { baseMs: 5, capMs: 20, lastResortMs: 5, killMs: 2_000 };

class Ground {
  readonly lines: { level: string; fields: Record<string, unknown> }[] = [];
  readonly seen: string[] = [];
  readonly children: ChildProcess[] = [];
  /** What the next children do, the last one again and again. */
  plan: string[] = ['ready'];
  /** While set, a store is away. */
  away = false;
  readonly process: SupervisedProcess;

  constructor(settings: Partial<LifeSettings> = {}) {
    const line = (level: string) => (fields: object) => void this.lines.push({ level, fields: fields as Record<string, unknown> });
    this.process = new SupervisedProcess({
      name: 'probe',
      log: { debug: line('debug'), info: line('info'), warn: line('warn'), error: line('error') },
      settings: { ...FAST, ...settings },
      prepare: async () => {
        this.seen.push('prepare');
        if (this.away) throw Object.assign(new Error('connect ECONNREFUSED'), { code: 'ECONNREFUSED' });
        return () => {
          this.seen.push('spawn');
          const how = this.plan.length > 1 ? this.plan.shift() : this.plan[0];
          const child = spawn(process.execPath, [CHILD, how as string], { stdio: ['ignore', 'inherit', 'inherit', 'ipc'], detached: true });
          this.children.push(child);
          return child;
        };
      },
      watch: {
        down: pid => void this.seen.push(`down ${pid === this.children.at(-1)?.pid}`),
        raise: ({ restarts }) => void this.seen.push(`raise ${restarts}`),
        clear: () => void this.seen.push('clear'),
      },
    });
  }

  get living(): number {
    return this.children.filter(({ pid }) => pid !== undefined && startedAt(pid) !== null).length;
  }
}

let ground: Ground;
afterEach(async () => {
  await ground.process[Symbol.asyncDispose]();
  expect(ground.living).toBe(0);
});

describe('a supervised process', () => {
  test('F-15 that is killed comes back as another process, and its row is taken back', async () => {
    ground = new Ground();
    await ground.process.start();
    const first = ground.process.pid as number;
    process.kill(first, 'SIGKILL');
    await eventually(() => ground.process.pid !== first && ground.process.life.phase).toBe('running');
    expect(startedAt(ground.process.pid as number)).not.toBeNull();
    expect([ground.seen, ground.living]).toEqual([['prepare', 'spawn', 'down true', 'prepare', 'spawn'], 1]);
  });

  test('F-02 whose store is away is waited for without a process, without a restart counted, and comes back with the store', async () => {
    ground = new Ground();
    await ground.process.start();
    ground.away = true;
    process.kill(ground.process.pid as number, 'SIGKILL');
    await eventually(() => ground.process.life.absences).toBeGreaterThan(6);
    expect([ground.children.length, ground.living, ground.process.pid, ground.process.life.restarts, ground.process.life.alert]).toEqual([1, 0, undefined, 1, undefined]);
    ground.away = false;
    await eventually(() => ground.process.life.phase).toBe('running');
    expect([ground.children.length, ground.living, ground.process.life.restarts]).toEqual([2, 1, 1]);
  });

  test('F-02 that says its store is away is killed, and that counts nothing', async () => {
    ground = new Ground();
    ground.plan = ['absent', 'absent', 'absent', 'absent', 'absent', 'ready'];
    await expect(ground.process.start()).rejects.toThrow('probe no good');
    await eventually(() => ground.process.life.phase).toBe('running');
    expect([ground.process.life.restarts, ground.seen.filter(word => word.startsWith('raise')), ground.living]).toEqual([0, [], 1]);
  });

  test('F-02 that never gets ready and is deaf to SIGTERM is killed, and none is left beside the next', async () => {
    ground = new Ground({ readyMs: 1_000 });
    ground.plan = ['hangs', 'ready'];
    await expect(ground.process.start()).rejects.toThrow('did not get ready in 1 s');
    await eventually(() => ground.process.life.phase).toBe('running');
    expect([ground.children[0]?.signalCode, ground.living]).toEqual(['SIGKILL', 1]);
  });

  test('F-03 that fails again and again is given up with an alert, tried on, and loses the alert when it runs', async () => {
    ground = new Ground();
    ground.plan = ['fails', 'fails', 'fails', 'fails', 'fails', 'ready'];
    await expect(ground.process.start()).rejects.toThrow('probe no good');
    await eventually(() => ground.process.life.phase).toBe('running');
    expect(ground.seen.filter(word => /raise|clear/.test(word))).toEqual(['raise 3', 'raise 3', 'clear']);
    const alerts = ground.lines.filter(({ fields }) => fields['alert'] === 'captain.service.failed');
    expect(alerts.map(({ level, fields }) => [level, fields['service_type'], fields['restarts'], fields['reason']])).toEqual(Array(2).fill(['error', 'probe', 3, 'no good']));
  });

  test.each(['ready', 'hangs'])('F-02 that %s ends with the host, by force where it must', async how => {
    ground = new Ground({ stopMs: 200 });
    ground.plan = [how];
    const started = ground.process.start();
    if (how === 'ready') await started;
    else await eventually(() => ground.living).toBe(1);
    const child = ground.children[0] as ChildProcess;
    if (how === 'hangs') await eventually(() => ground.process.life.phase).toBe('starting');
    const gone = once(child, 'exit');
    await ground.process[Symbol.asyncDispose]();
    await gone;
    expect([ground.process.life.phase, ground.living]).toEqual(['stopped', 0]);
    await started.catch(() => undefined);
  });

  test('F-02 ends with the host while its store is away', async () => {
    ground = new Ground({ baseMs: 60_000, capMs: 60_000 });
    ground.away = true;
    await expect(ground.process.start()).rejects.toThrow('ECONNREFUSED');
    await ground.process[Symbol.asyncDispose]();
    expect([ground.process.life.phase, ground.children]).toEqual(['stopped', []]);
  });
});
