import { describe, expect, test, vi } from 'vitest';
import { eventually } from '../storage/fixtures/eventually.ts';
import { WorkGround } from './fixtures/work-ground.ts';
import { type Job, JobRunner } from './job-runner.ts';

vi.setConfig({ testTimeout: 20_000, hookTimeout: 30_000 });

const ground = WorkGround.use();

describe('a job', () => {
  const ran: string[] = [];
  const jobs = (work: Job['work'], more: Partial<Job> = {}) => {
    const made = (worker: string) => {
      const one = new JobRunner({
        service: 'shop',
        worker,
        clock: ground.clock,
        pool: ground.pool,
        log: ground.log,
        jobs: [
          {
            name: 'usage',
            summary: 'Counts',
            ...(more.every ? {} : { cron: '5 0 * * *', timezone: 'Europe/Berlin' }),
            runs: 'fleet',
            work,
            ...more,
          },
        ],
      });
      ground.runners.push(one);
      return one;
    };
    return made;
  };

  test('with a cron runs once in the whole fleet at the times of its zone, and makes up for one that passed', async () => {
    ran.length = 0;
    const made = jobs(async () => void ran.push(ground.clock.now().toISOString().slice(0, 16)));
    const [one, two] = [made('one'), made('two')];
    expect([one, two]).toHaveLength(2);
    await ground.clock.advance('2s');
    // Midnight in Berlin is 23:00 UTC in winter.
    await ground.clock.leap('23h');
    await ground.clock.advance('6m');
    expect(ran).toHaveLength(1);
    await ground.clock.leap('3d');
    await ground.clock.advance('2s');
    expect(ran).toHaveLength(2);
    expect(await one.records.list()).toMatchObject([{ name: 'usage', outcome: 'ok', next_at: expect.stringContaining('T23:05:00') }]);
  });

  test('is run at once when asked, tells when it is busy, and keeps what came of it', async () => {
    const gate = Promise.withResolvers<void>();
    const runner = jobs(async () => gate.promise, { every: '1h' })('one');
    expect([runner.runNow('usage'), runner.runNow('usage'), runner.runNow('nothing')]).toEqual(['started', 'busy', 'unknown']);
    gate.resolve();
    await eventually(async () => (await runner.records.list())[0]?.outcome).toBe('ok');
  });

  test('that lasts too long loses its signal and counts as failed', async () => {
    let signalled = false;
    const runner = jobs(signal => new Promise(() => signal.addEventListener('abort', () => (signalled = true))), {
      timeout: '30s',
      every: '1h',
    })('one');
    runner.runNow('usage');
    // The lock is asked for before the work begins.
    await eventually(async () => {
      await ground.clock.advance('31s');
      return (await runner.records.list())[0];
    }).toMatchObject({ outcome: 'failed', error: 'JOB_TIMEOUT' });
    expect(signalled).toBe(true);
  });

  test('that goes on after its deadline keeps others from beginning it, here and in the fleet, until it ends', async () => {
    const gate = Promise.withResolvers<void>();
    let begun = 0;
    const made = jobs(
      async () => {
        begun += 1;
        await gate.promise;
      },
      { timeout: '30s', every: '1h' },
    );
    const [one, two] = [made('one'), made('two')];
    one.runNow('usage');
    await eventually(async () => {
      await ground.clock.advance('31s');
      return (await one.records.list())[0];
    }).toMatchObject({ error: 'JOB_TIMEOUT' });
    expect(one.runNow('usage')).toBe('busy');
    two.runNow('usage');
    // The second asks for the lock and is done when it has been refused.
    await eventually(async () => two.runNow('usage')).toBe('started');
    expect(begun).toBe(1);
    gate.resolve();
    await eventually(async () => {
      two.runNow('usage');
      return begun;
    }).toBe(2);
  });
});
