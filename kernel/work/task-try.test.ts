import { ProblemError } from '@platform/sdk';
import { describe, expect, test, vi } from 'vitest';
import { eventually } from '../storage/fixtures/eventually.ts';
import { WorkGround } from './fixtures/work-ground.ts';
import { TaskStore } from './task-store.ts';

vi.setConfig({ testTimeout: 20_000, hookTimeout: 30_000 });

const ground = WorkGround.use();

describe('a task', () => {
  test('that fails is tried again after its pauses, lies with the dead after the last try, and is replayed from the start', async () => {
    const tries: number[] = [];
    const made = await ground.runner(async (_, { attempt }) => {
      tries.push(attempt);
      throw new Error('no luck');
    });
    await ground.put(1);
    await eventually(() => tries).toEqual([1]);
    await made.idle();
    await ground.clock.advance('9s');
    expect(tries).toEqual([1]);
    await ground.clock.advance('2s');
    await eventually(() => tries).toEqual([1, 2]);
    await made.idle();
    await ground.clock.advance('66s');
    await eventually(() => tries).toEqual([1, 2, 3]);
    await eventually(() => ground.states()).toEqual(['dead']);
    const [dead] = await made.store.dead(10, undefined);
    expect(dead).toMatchObject({ name: 'send', attempts: 3, failures: [{ reason: 'Error' }, { reason: 'Error' }, { reason: 'Error' }] });
    expect(ground.logged.filter(({ fields }) => fields['code'] === 'task_dead')).toHaveLength(1);
    expect(await made.store.replay(ground.pool.sql, dead?.task_id as string, ground.clock.now())).toBe('send');
    await eventually(() => tries).toEqual([1, 2, 3, 1]);
  });

  test('whose refusal says never is not tried again', async () => {
    const made = await ground.runner(async () => {
      throw new ProblemError('post', 'address_refused', { status: 400, title: 'x', retry: 'never' });
    });
    await ground.put(1);
    await eventually(() => ground.states()).toEqual(['dead']);
    expect((await made.store.dead(1, undefined))[0]?.failures).toMatchObject([{ reason: '400 post/address_refused' }]);
    expect(await made.store.drop(ground.pool.sql, (await made.store.dead(1, undefined))[0]?.task_id as string)).toBe('send');
    expect(await ground.states()).toEqual([]);
  });

  test('that does not end in its time loses its signal, then counts as failed and leaves its place', async () => {
    const aborted = Promise.withResolvers<void>();
    const made = await ground.runner((_, { signal }) => new Promise(() => signal.addEventListener('abort', () => aborted.resolve())), {
      more: { timeout: '20s', attempts: 1 },
      slots: 1,
    });
    await ground.put(1);
    await eventually(() => made.running).toBe(1);
    await ground.clock.advance('21s');
    await aborted.promise;
    await ground.clock.advance('6s');
    await eventually(() => ground.states()).toEqual(['dead']);
    await eventually(() => made.running).toBe(0);
  });

  test('of a process that died comes back when its lease ends, and is given up when every process died of it', async () => {
    await ground.put(1);
    const store = new TaskStore(ground.pool);
    const taken = await store.take({
      names: ['send'],
      most: 1,
      after: undefined,
      busy: [],
      held: {},
      abreast: 4,
      worker: 'dead',
      now: ground.clock.now(),
      until: new Date(ground.clock.now().getTime() + 30_000),
    });
    expect(taken).toHaveLength(1);
    const done: number[] = [];
    await ground.runner(async (_, { attempt }) => void done.push(attempt));
    await ground.clock.advance('25s');
    expect(done).toEqual([]);
    await ground.clock.advance('10s');
    await eventually(() => done).toEqual([2]);
    await ground.put(2, { at: new Date(ground.clock.now().getTime() + 10_000) });
    await ground.pool.raw`update work_tasks set attempts = 3`;
    await ground.clock.advance('11s');
    await eventually(async () => [done.length, ...(await ground.states())]).toEqual([1, 'dead']);
  });

  test('that ends inside the transaction of its effect happens exactly once', async () => {
    await ground.pool.raw`create table if not exists effects (n int)`;
    await ground.pool.raw`truncate effects`;
    const refused = Promise.withResolvers<string>();
    const made = await ground.runner(async ({ n }, run) => {
      await ground.pool
        .tx(async sql => {
          await sql`insert into effects values (${n})`;
          // Another process has it by now: the effect must not be written twice.
          if (n === 2) await ground.pool.raw`update work_tasks set taken_by = 'another' where task_id = ${run.taskId}`;
          await run.finish({ sql });
        })
        .catch(error => {
          refused.resolve((error as Error).message);
          throw error;
        });
    });
    await ground.put(1);
    await eventually(() => ground.states()).toEqual([]);
    await ground.put(2);
    expect(await refused.promise).toContain('taken this task over');
    await made.idle();
    expect([...(await ground.pool.raw<object[]>`select n from effects`)]).toEqual([{ n: 1 }]);
  });

  test('that was ended in a transaction which does not commit is tried again like any other', async () => {
    const made = await ground.runner(async (_, run) => {
      await ground.pool.tx(async sql => {
        await run.finish({ sql });
        throw new Error('not committed');
      });
    });
    await ground.put(1);
    // It waits before the first try, too.
    await eventually(async () => [
      ...(await ground.pool.raw<object[]>`select attempts, taken_by, failures->0->>'reason' as reason from work_tasks`),
    ]).toEqual([{ attempts: 1, taken_by: null, reason: expect.any(String) }]);
    await made.idle();
    expect(await ground.states()).toEqual(['waiting']);
  });

  test('that runs when the service stops is given back, and the try does not count', async () => {
    const made = await ground.runner(
      (_, { signal }) => new Promise((_resolve, reject) => signal.addEventListener('abort', () => reject(new Error('stopped')))),
    );
    await ground.put(1);
    await eventually(() => made.running).toBe(1);
    await made[Symbol.asyncDispose]();
    expect([...(await ground.pool.raw<object[]>`select state, attempts, taken_by from work_tasks`)]).toEqual([
      { state: 'waiting', attempts: 0, taken_by: null },
    ]);
  });

  test('that is dead is forgotten when its time there is up', async () => {
    await ground.runner(() => Promise.reject(new Error('refused')), { more: { attempts: 1, keepDead: '15m' } });
    await ground.put(1);
    await eventually(() => ground.states()).toEqual(['dead']);
    await ground.clock.advance('10m');
    expect(await ground.states()).toEqual(['dead']);
    await ground.clock.advance('10m');
    await eventually(() => ground.states()).toEqual([]);
  });

  test('that is kept stays for as long as it says', async () => {
    const made = await ground.runner(async () => undefined, { more: { keep: '15m' } });
    await ground.put(1);
    await eventually(() => ground.states()).toEqual(['done']);
    await ground.clock.advance('10m');
    expect(await ground.states()).toEqual(['done']);
    await ground.clock.advance('10m');
    await eventually(() => ground.states()).toEqual([]);
    expect(await made.store.figures(ground.clock.now())).toEqual([]);
  });
});
