import { ProblemError, type TaskDef, type TaskRun, Type } from '@platform/sdk';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test, vi } from 'vitest';
import { ManualClock } from '../base/clock.ts';
import { newId } from '../base/ids.ts';
import { eventually } from '../storage/fixtures/eventually.ts';
import { TestCluster } from '../storage/fixtures/test-cluster.ts';
import { migrate } from '../storage/schema/migrations.ts';
import type { PostgresPool } from '../storage/postgres/postgres-pool.ts';
import { type Job, JobRunner } from './job-runner.ts';
import { TaskRunner } from './task-runner.ts';
import { cancelTask, enqueueTask, TaskStore } from './task-store.ts';
import type { TaskWork } from './task-try.ts';
import { WORK_MIGRATIONS } from './work-schema.ts';

vi.setConfig({ testTimeout: 20_000, hookTimeout: 30_000 });

let cluster: TestCluster;
let pool: PostgresPool;
let clock: ManualClock;
let logged: { level: string; fields: Record<string, unknown> }[];
const runners: AsyncDisposable[] = [];
const write = (level: string) => (fields: object) => void logged.push({ level, fields: { ...fields } });
const log = { debug: write('debug'), info: write('info'), warn: write('warn'), error: write('error') };

beforeAll(async () => {
  cluster = await TestCluster.start();
  pool = await cluster.pool('shop');
  await migrate({ sql: pool, service: 'shop', builtins: WORK_MIGRATIONS });
});
afterAll(() => cluster[Symbol.asyncDispose]());
beforeEach(async () => {
  await pool.raw`truncate work_tasks, work_jobs`;
  clock = new ManualClock();
  logged = [];
});
afterEach(async () => {
  for (const runner of runners.splice(0)) await runner[Symbol.asyncDispose]();
});

type Payload = { n: number };
const def = (more: Partial<TaskDef> = {}): TaskDef => ({
  summary: 'Sends',
  payload: Type.Object({ n: Type.Integer() }),
  backoff: [10, 60],
  attempts: 3,
  ...more,
});
async function runner(
  work: (payload: Payload, run: TaskRun) => Promise<void>,
  { more = {}, slots = 4, worker = newId() }: { more?: Partial<TaskDef>; slots?: number; worker?: string } = {},
) {
  const made = new TaskRunner({
    service: 'shop',
    tasks: { send: { def: def(more), work: work as TaskWork } },
    pool,
    clock,
    log,
    worker,
    slots,
  });
  runners.push(made);
  await made.start();
  return made;
}
const put = (n: number, { lane = '', key = null, at }: { lane?: string; key?: string | null; at?: Date } = {}) =>
  pool.tx(sql =>
    enqueueTask(sql, {
      task_id: newId(),
      name: 'send',
      lane,
      key,
      payload: { n },
      correlation_id: `c-${n}`,
      subject: 'shop',
      due_at: at ?? clock.now(),
      created_at: clock.now(),
    }),
  );
const states = async () =>
  (await pool.raw<{ state: string }[]>`select state from work_tasks order by created_at, task_id`).map(({ state }) => state);

describe('a task', () => {
  test('with places of its own goes on while others hang in all of theirs', async () => {
    const hanging = Promise.withResolvers<void>();
    const rung: number[] = [];
    const made = new TaskRunner({
      service: 'shop',
      tasks: {
        send: { def: def(), work: () => hanging.promise },
        ring: { def: def({ slots: 1 }), work: (async ({ n }: Payload) => void rung.push(n)) as TaskWork },
      },
      pool,
      clock,
      log,
      worker: newId(),
      slots: 2,
    });
    runners.push(made);
    for (const lane of ['a', 'b', 'c']) await put(1, { lane });
    await made.start();
    await eventually(() => made.running).toEqual(2);
    await pool.tx(sql =>
      enqueueTask(sql, {
        task_id: newId(),
        name: 'ring',
        lane: 'a',
        key: null,
        payload: { n: 7 },
        correlation_id: 'c',
        subject: 's',
        due_at: clock.now(),
        created_at: clock.now(),
      }),
    );
    await eventually(() => rung).toEqual([7]);
    await eventually(() => made.running).toEqual(2);
    hanging.resolve();
    await eventually(states).toEqual([]);
  });

  test('is done when the change that asked for it has committed, and never when it has not', async () => {
    const done: number[] = [];
    await runner(async ({ n }) => void done.push(n));
    const lost = pool.tx(async sql => {
      await enqueueTask(sql, {
        task_id: newId(),
        name: 'send',
        lane: '',
        key: null,
        payload: { n: 1 },
        correlation_id: 'c',
        subject: 's',
        due_at: clock.now(),
        created_at: clock.now(),
      });
      throw new Error('the change fails');
    });
    await expect(lost).rejects.toThrow('the change fails');
    await put(2);
    await eventually(() => done).toEqual([2]);
    await eventually(states).toEqual([]);
  });

  test('waits for its time, and gives way to a newer one of its key', async () => {
    const done: number[] = [];
    const at = new Date(clock.now().getTime() + 60_000);
    await put(1, { key: 'k', at });
    await put(2, { key: 'k', at });
    const made = await runner(async ({ n }) => void done.push(n));
    await made.look();
    expect(done).toEqual([]);
    await clock.advance('61s');
    await eventually(() => done).toEqual([2]);
    await put(3, { key: 'gone', at: new Date(clock.now().getTime() + 60_000) });
    expect([await cancelTask(pool.sql, 'send', 'gone'), await cancelTask(pool.sql, 'send', 'gone')]).toEqual([true, false]);
  });

  test('that fails is tried again after its pauses, lies with the dead after the last try, and is replayed from the start', async () => {
    const tries: number[] = [];
    const made = await runner(async (_, { attempt }) => {
      tries.push(attempt);
      throw new Error('no luck');
    });
    await put(1);
    await eventually(() => tries).toEqual([1]);
    await made.idle();
    await clock.advance('9s');
    expect(tries).toEqual([1]);
    await clock.advance('2s');
    await eventually(() => tries).toEqual([1, 2]);
    await made.idle();
    await clock.advance('66s');
    await eventually(() => tries).toEqual([1, 2, 3]);
    await eventually(states).toEqual(['dead']);
    const [dead] = await made.store.dead(10, undefined);
    expect(dead).toMatchObject({ name: 'send', attempts: 3, failures: [{ reason: 'Error' }, { reason: 'Error' }, { reason: 'Error' }] });
    expect(logged.filter(({ fields }) => fields['code'] === 'task_dead')).toHaveLength(1);
    expect(await made.store.replay(pool.sql, dead?.task_id as string, clock.now())).toBe('send');
    await eventually(() => tries).toEqual([1, 2, 3, 1]);
  });

  test('whose refusal says never is not tried again', async () => {
    const made = await runner(async () => {
      throw new ProblemError('post', 'address_refused', { status: 400, title: 'x', retry: 'never' });
    });
    await put(1);
    await eventually(states).toEqual(['dead']);
    expect((await made.store.dead(1, undefined))[0]?.failures).toMatchObject([{ reason: '400 post/address_refused' }]);
    expect(await made.store.drop(pool.sql, (await made.store.dead(1, undefined))[0]?.task_id as string)).toBe('send');
    expect(await states()).toEqual([]);
  });

  test('that does not end in its time loses its signal, then counts as failed and leaves its place', async () => {
    const aborted = Promise.withResolvers<void>();
    const made = await runner((_, { signal }) => new Promise(() => signal.addEventListener('abort', () => aborted.resolve())), {
      more: { timeout: '20s', attempts: 1 },
      slots: 1,
    });
    await put(1);
    await eventually(() => made.running).toBe(1);
    await clock.advance('21s');
    await aborted.promise;
    await clock.advance('6s');
    await eventually(states).toEqual(['dead']);
    await eventually(() => made.running).toBe(0);
  });

  test('of a process that died comes back when its lease ends, and is given up when every process died of it', async () => {
    await put(1);
    const store = new TaskStore(pool);
    const taken = await store.take({
      names: ['send'],
      most: 1,
      after: undefined,
      busy: [],
      held: {},
      abreast: 4,
      worker: 'dead',
      now: clock.now(),
      until: new Date(clock.now().getTime() + 30_000),
    });
    expect(taken).toHaveLength(1);
    const done: number[] = [];
    await runner(async (_, { attempt }) => void done.push(attempt));
    await clock.advance('25s');
    expect(done).toEqual([]);
    await clock.advance('10s');
    await eventually(() => done).toEqual([2]);
    await put(2, { at: new Date(clock.now().getTime() + 10_000) });
    await pool.raw`update work_tasks set attempts = 3`;
    await clock.advance('11s');
    await eventually(async () => [done.length, ...(await states())]).toEqual([1, 'dead']);
  });

  test('is taken by one of many processes', async () => {
    const done: number[] = [];
    for (let index = 0; index < 4; index++) await runner(async ({ n }) => void done.push(n));
    await pool.tx(async sql => {
      for (let n = 0; n < 60; n++)
        await enqueueTask(sql, {
          task_id: newId(),
          name: 'send',
          lane: String(n % 7),
          key: null,
          payload: { n },
          correlation_id: 'c',
          subject: 's',
          due_at: clock.now(),
          created_at: clock.now(),
        });
    });
    await eventually(() => done.length).toBe(60);
    expect(new Set(done).size).toBe(60);
    await eventually(states).toEqual([]);
  });

  test('that ends inside the transaction of its effect happens exactly once', async () => {
    await pool.raw`create table if not exists effects (n int)`;
    await pool.raw`truncate effects`;
    const refused = Promise.withResolvers<string>();
    const made = await runner(async ({ n }, run) => {
      await pool
        .tx(async sql => {
          await sql`insert into effects values (${n})`;
          // Another process has it by now: the effect must not be written twice.
          if (n === 2) await pool.raw`update work_tasks set taken_by = 'another' where task_id = ${run.taskId}`;
          await run.finish({ sql });
        })
        .catch(error => {
          refused.resolve((error as Error).message);
          throw error;
        });
    });
    await put(1);
    await eventually(states).toEqual([]);
    await put(2);
    expect(await refused.promise).toContain('taken this task over');
    await made.idle();
    expect([...(await pool.raw<object[]>`select n from effects`)]).toEqual([{ n: 1 }]);
  });

  test('that was ended in a transaction which does not commit is tried again like any other', async () => {
    const made = await runner(async (_, run) => {
      await pool.tx(async sql => {
        await run.finish({ sql });
        throw new Error('not committed');
      });
    });
    await put(1);
    // It waits before the first try, too.
    await eventually(async () => [
      ...(await pool.raw<object[]>`select attempts, taken_by, failures->0->>'reason' as reason from work_tasks`),
    ]).toEqual([{ attempts: 1, taken_by: null, reason: expect.any(String) }]);
    await made.idle();
    expect(await states()).toEqual(['waiting']);
  });

  test('of one lane does not wait for the backlog of another, and no lane takes every place', async () => {
    const gate = Promise.withResolvers<void>();
    const begun: number[] = [];
    const made = await runner(
      async ({ n }) => {
        begun.push(n);
        await gate.promise;
      },
      { slots: 4, more: { abreast: 3 } },
    );
    await pool.tx(async sql => {
      for (let n = 0; n < 50; n++)
        await enqueueTask(sql, {
          task_id: newId(),
          name: 'send',
          lane: 'loud',
          key: null,
          payload: { n },
          correlation_id: 'c',
          subject: 's',
          due_at: clock.now(),
          created_at: clock.now(),
        });
    });
    await eventually(() => begun.length).toBe(3);
    await put(100, { lane: 'quiet' });
    await eventually(() => begun.includes(100)).toBe(true);
    expect(made.running).toBe(4);
    gate.resolve();
    await eventually(states).toEqual([]);
  });

  test('is found by few reads, however many wait in its lane, in a busy one, or for another day', async () => {
    const [now, until] = [clock.now(), new Date(clock.now().getTime() + 30_000)];
    await pool.raw`
      insert into work_tasks (task_id, name, lane, payload, correlation_id, subject, due_at, created_at)
      select gen_random_uuid(), case when n % 3 = 0 then 'other' else 'send' end,
        case when n <= 10000 then 'busy' when n <= 20000 then 'lone' else 'later ' || n % 20 end, '{}', 'c', 's',
        case when n <= 20000 then ${now}::timestamptz else ${now}::timestamptz + interval '1 day' end, ${now}::timestamptz
      from generate_series(1, 30000) n`;
    const reads = async () => {
      const [row] = await pool.raw<object[]>`
        explain (analyze, buffers, format json)
        select * from work_take('{send}', 8, null, '{busy}', '{"busy": 4}', 4, 'here', ${now}::timestamptz, ${until}::timestamptz)`;
      const [{ Plan: plan }] = Object.values(row as object)[0] as [
        { Plan: Record<'Actual Rows' | 'Shared Hit Blocks' | 'Shared Read Blocks', number> },
      ];
      expect(plan['Actual Rows']).toBe(4);
      return plan['Shared Hit Blocks'] + plan['Shared Read Blocks'];
    };
    // The first one also reads what tables and functions there are.
    await reads();
    const [table] = await pool.raw<[{ pages: number }]>`select pg_relation_size('work_tasks')::int / 8192 as pages`;
    // Whoever reads all that waits reads every page of the table, and then those of an index.
    expect(await reads()).toBeLessThan(table.pages);
    await pool.raw`truncate work_tasks`;
  });

  test('that runs when the service stops is given back, and the try does not count', async () => {
    const made = await runner(
      (_, { signal }) => new Promise((_resolve, reject) => signal.addEventListener('abort', () => reject(new Error('stopped')))),
    );
    await put(1);
    await eventually(() => made.running).toBe(1);
    await made[Symbol.asyncDispose]();
    expect([...(await pool.raw<object[]>`select state, attempts, taken_by from work_tasks`)]).toEqual([
      { state: 'waiting', attempts: 0, taken_by: null },
    ]);
  });

  test('that somebody waits for is tried at once, whatever its time, by one; what is left can be read', async () => {
    const broken = new Set([2]);
    const made = await runner(({ n }) => (broken.has(n) ? Promise.reject(new Error('away')) : Promise.resolve()));
    const later = new Date(clock.now().getTime() + 3_600_000);
    for (const n of [1, 2]) await put(n, { key: `k${n}`, at: later });
    expect(await Promise.all([made.attempt('send', 'k1'), made.attempt('send', 'k1')]).then(ends => ends.sort())).toEqual([
      'absent',
      'done',
    ]);
    expect(await made.attempt('send', 'k2')).toBe('failed');
    expect(await made.left('send')).toEqual([
      expect.objectContaining({ key: 'k2', payload: { n: 2 }, state: 'waiting', attempts: 1, failure: 'Error' }),
    ]);
    expect([(await made.left('send', 'k2')).length, await made.left('send', 'k1')]).toEqual([1, []]);
    broken.clear();
    await made.drain();
    expect([await made.attempt('send', 'k2'), await made.left('send')]).toEqual(['done', []]);
  });

  test('that is dead is forgotten when its time there is up', async () => {
    await runner(() => Promise.reject(new Error('refused')), { more: { attempts: 1, keepDead: '15m' } });
    await put(1);
    await eventually(states).toEqual(['dead']);
    await clock.advance('10m');
    expect(await states()).toEqual(['dead']);
    await clock.advance('10m');
    await eventually(states).toEqual([]);
  });

  test('that is kept stays for as long as it says', async () => {
    const made = await runner(async () => undefined, { more: { keep: '15m' } });
    await put(1);
    await eventually(states).toEqual(['done']);
    await clock.advance('10m');
    expect(await states()).toEqual(['done']);
    await clock.advance('10m');
    await eventually(states).toEqual([]);
    expect(await made.store.figures(clock.now())).toEqual([]);
  });
});

describe('a job', () => {
  const ran: string[] = [];
  const jobs = (work: Job['work'], more: Partial<Job> = {}) => {
    const made = (worker: string) => {
      const one = new JobRunner({
        service: 'shop',
        worker,
        clock,
        pool,
        log,
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
      runners.push(one);
      return one;
    };
    return made;
  };

  test('with a cron runs once in the whole fleet at the times of its zone, and makes up for one that passed', async () => {
    ran.length = 0;
    const made = jobs(async () => void ran.push(clock.now().toISOString().slice(0, 16)));
    const [one, two] = [made('one'), made('two')];
    expect([one, two]).toHaveLength(2);
    await clock.advance('2s');
    // Midnight in Berlin is 23:00 UTC in winter.
    await clock.leap('23h');
    await clock.advance('6m');
    expect(ran).toHaveLength(1);
    await clock.leap('3d');
    await clock.advance('2s');
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
      await clock.advance('31s');
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
      await clock.advance('31s');
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
