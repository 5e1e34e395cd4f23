import { describe, expect, test, vi } from 'vitest';
import { newId } from '../base/ids.ts';
import { eventually } from '../storage/fixtures/eventually.ts';
import { def, type Payload, WorkGround } from './fixtures/work-ground.ts';
import { TaskRunner } from './task-runner.ts';
import { cancelTask, enqueueTask } from './task-store.ts';
import type { TaskWork } from './task-try.ts';

vi.setConfig({ testTimeout: 20_000, hookTimeout: 30_000 });

const ground = WorkGround.use();

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
      pool: ground.pool,
      clock: ground.clock,
      log: ground.log,
      worker: newId(),
      slots: 2,
    });
    ground.runners.push(made);
    for (const lane of ['a', 'b', 'c']) await ground.put(1, { lane });
    await made.start();
    await eventually(() => made.running).toEqual(2);
    await ground.pool.tx(sql =>
      enqueueTask(sql, {
        task_id: newId(),
        name: 'ring',
        lane: 'a',
        key: null,
        payload: { n: 7 },
        correlation_id: 'c',
        subject: 's',
        due_at: ground.clock.now(),
        created_at: ground.clock.now(),
      }),
    );
    await eventually(() => rung).toEqual([7]);
    await eventually(() => made.running).toEqual(2);
    hanging.resolve();
    await eventually(() => ground.states()).toEqual([]);
  });

  test('is done when the change that asked for it has committed, and never when it has not', async () => {
    const done: number[] = [];
    await ground.runner(async ({ n }) => void done.push(n));
    const lost = ground.pool.tx(async sql => {
      await enqueueTask(sql, {
        task_id: newId(),
        name: 'send',
        lane: '',
        key: null,
        payload: { n: 1 },
        correlation_id: 'c',
        subject: 's',
        due_at: ground.clock.now(),
        created_at: ground.clock.now(),
      });
      throw new Error('the change fails');
    });
    await expect(lost).rejects.toThrow('the change fails');
    await ground.put(2);
    await eventually(() => done).toEqual([2]);
    await eventually(() => ground.states()).toEqual([]);
  });

  test('waits for its time, and gives way to a newer one of its key', async () => {
    const done: number[] = [];
    const at = new Date(ground.clock.now().getTime() + 60_000);
    await ground.put(1, { key: 'k', at });
    await ground.put(2, { key: 'k', at });
    const made = await ground.runner(async ({ n }) => void done.push(n));
    await made.look();
    expect(done).toEqual([]);
    await ground.clock.advance('61s');
    await eventually(() => done).toEqual([2]);
    await ground.put(3, { key: 'gone', at: new Date(ground.clock.now().getTime() + 60_000) });
    expect([await cancelTask(ground.pool.sql, 'send', 'gone'), await cancelTask(ground.pool.sql, 'send', 'gone')]).toEqual([true, false]);
  });

  test('is taken by one of many processes', async () => {
    const done: number[] = [];
    for (let index = 0; index < 4; index++) await ground.runner(async ({ n }) => void done.push(n));
    await ground.pool.tx(async sql => {
      for (let n = 0; n < 60; n++)
        await enqueueTask(sql, {
          task_id: newId(),
          name: 'send',
          lane: String(n % 7),
          key: null,
          payload: { n },
          correlation_id: 'c',
          subject: 's',
          due_at: ground.clock.now(),
          created_at: ground.clock.now(),
        });
    });
    await eventually(() => done.length).toBe(60);
    expect(new Set(done).size).toBe(60);
    await eventually(() => ground.states()).toEqual([]);
  });

  test('of one lane does not wait for the backlog of another, and no lane takes every place', async () => {
    const gate = Promise.withResolvers<void>();
    const begun: number[] = [];
    const made = await ground.runner(
      async ({ n }) => {
        begun.push(n);
        await gate.promise;
      },
      { slots: 4, more: { abreast: 3 } },
    );
    await ground.pool.tx(async sql => {
      for (let n = 0; n < 50; n++)
        await enqueueTask(sql, {
          task_id: newId(),
          name: 'send',
          lane: 'loud',
          key: null,
          payload: { n },
          correlation_id: 'c',
          subject: 's',
          due_at: ground.clock.now(),
          created_at: ground.clock.now(),
        });
    });
    await eventually(() => begun.length).toBe(3);
    await ground.put(100, { lane: 'quiet' });
    await eventually(() => begun.includes(100)).toBe(true);
    expect(made.running).toBe(4);
    gate.resolve();
    await eventually(() => ground.states()).toEqual([]);
  });

  test('is found by few reads, however many wait in its lane, in a busy one, or for another day', async () => {
    const [now, until] = [ground.clock.now(), new Date(ground.clock.now().getTime() + 30_000)];
    await ground.pool.raw`
      insert into work_tasks (task_id, name, lane, payload, correlation_id, subject, due_at, created_at)
      select gen_random_uuid(), case when n % 3 = 0 then 'other' else 'send' end,
        case when n <= 10000 then 'busy' when n <= 20000 then 'lone' else 'later ' || n % 20 end, '{}', 'c', 's',
        case when n <= 20000 then ${now}::timestamptz else ${now}::timestamptz + interval '1 day' end, ${now}::timestamptz
      from generate_series(1, 30000) n`;
    const reads = async () => {
      const [row] = await ground.pool.raw<object[]>`
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
    const [table] = await ground.pool.raw<[{ pages: number }]>`select pg_relation_size('work_tasks')::int / 8192 as pages`;
    // Whoever reads all that waits reads every page of the table, and then those of an index.
    expect(await reads()).toBeLessThan(table.pages);
    await ground.pool.raw`truncate work_tasks`;
  });

  test('that somebody waits for is tried at once, whatever its time, by one; what is left can be read', async () => {
    const broken = new Set([2]);
    const made = await ground.runner(({ n }) => (broken.has(n) ? Promise.reject(new Error('away')) : Promise.resolve()));
    const later = new Date(ground.clock.now().getTime() + 3_600_000);
    for (const n of [1, 2]) await ground.put(n, { key: `k${n}`, at: later });
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
});
