import { eventually, openTestStores, type TestStores } from '@platform/testing';
import { afterAll, beforeAll, expect, test, vi } from 'vitest';
import { type Entry, newEnv, RunningBus, workload } from '../fixtures/running-bus.ts';

vi.setConfig({ testTimeout: 30_000, hookTimeout: 60_000 });

const shop = workload('shop');
const mail = workload('mail');
const stat = workload('stat');
let stores: TestStores;
let bus: RunningBus;
beforeAll(async () => {
  stores = await openTestStores();
  bus = await RunningBus.start(stores);
});
afterAll(async () => {
  await bus[Symbol.asyncDispose]();
  await stores[Symbol.asyncDispose]();
});

interface Letter {
  readonly dlq_id: string;
  readonly reason: string;
  readonly reasons: string[];
  readonly attempts: number;
  readonly group: string;
  readonly entry: { payload: { n: number }; event_type: string; idempotency_key: string };
}
const nack = async (env: string, ids: string[], more: object = {}) =>
  (await bus.call('nack', mail, { body: { env_id: env, stream_family: 'app', consumer_group: 'g', message_ids: ids, ...more } })).value as {
    queued: number;
  };
const letters = async (env: string, query: object = {}) =>
  (await bus.call('listDeadLetters', shop, { query: { env_id: env, ...query } })).value as { items: Letter[]; next_cursor: string | null };
const readOne = async (env: string) => {
  const [entry, ...more] = await bus.consume(mail, { env_id: env });
  expect(more).toEqual([]);
  return entry;
};

test('BUS-046 BUS-016 BUS-035: a refused entry leaves its group and comes back once its time has come, counted, under the same key', async () => {
  const env = newEnv();
  await bus.produce(shop, env, 1, { idempotency_key: 'k' });
  const first = await readOne(env);
  expect(await nack(env, [first?.message_id as string, '1-1'], { reason: 'not yet' })).toEqual({ queued: 1, lost: ['1-1'] });
  expect(await nack(env, [first?.message_id as string])).toEqual({ queued: 0, lost: [first?.message_id] });
  expect((await bus.store.client.xpending(`bus:{${env}}:app`, 'mail.g'))[0]).toBe(0);
  await bus.clock.advance('20s');
  expect(await bus.consume(mail, { env_id: env })).toEqual([]);
  await bus.clock.advance('10s');
  expect(await readOne(env)).toMatchObject({ payload: { n: 1 }, idempotency_key: 'k', delivery_count: 2 });
});

test('BUS-015: what may come back at once comes with the reaper, which looks every ten seconds', async () => {
  const env = newEnv();
  const at: number[] = [];
  await bus.produce(shop, env, 1);
  // Its turn may be at any second of the clock: the second wait is the whole one.
  for (let turn = 0; turn < 2; turn++) {
    const entry = turn === 0 ? await readOne(env) : undefined;
    if (entry) await nack(env, [entry.message_id], { retry_after_secs: 0 });
    for (let second = 1; ; second++) {
      await bus.clock.advance('1s');
      const again = await readOne(env);
      if (!again) continue;
      at.push(second);
      await nack(env, [again.message_id], { retry_after_secs: 0 });
      break;
    }
  }
  expect(at[0]).toBeLessThanOrEqual(10);
  expect(at[1]).toBe(10);
});

test('the copy of a refused entry is for the group that refused it', async () => {
  const env = newEnv();
  await bus.produce(shop, env, 1);
  expect(await bus.drain(stat, { env_id: env })).toHaveLength(1);
  await nack(env, [(await readOne(env))?.message_id as string], { retry_after_secs: 0 });
  await bus.clock.advance('10s');
  expect(await bus.consume(stat, { env_id: env })).toEqual([]);
  expect((await bus.store.client.xpending(`bus:{${env}}:app`, 'stat.g'))[0]).toBe(0);
  expect(await readOne(env)).toMatchObject({ payload: { n: 1 } });
});

test('BUS-004 BUS-017 BUS-034: the fifth refusal makes a dead letter with the reason of every attempt, and the bus says so', async () => {
  const env = newEnv();
  await bus.produce(shop, env, 1);
  const original: object[] = [];
  for (let attempt = 1; attempt <= 5; attempt++) {
    const entry = await readOne(env);
    expect(entry?.delivery_count).toBe(attempt);
    const { message_id: _, delivery_count: __, ...envelope } = entry as Entry;
    original.push(envelope);
    await nack(env, [entry?.message_id as string], { retry_after_secs: 5, reason: `fault ${attempt}` });
    await bus.clock.advance('10s');
  }
  expect(await bus.consume(mail, { env_id: env })).toEqual([]);
  const { items } = await letters(env);
  expect(items).toMatchObject([
    {
      env_id: env,
      stream_family: 'app',
      reason: 'retries_exhausted: fault 5',
      reasons: ['fault 1', 'fault 2', 'fault 3', 'fault 4', 'fault 5'],
      attempts: 5,
      group: 'mail.g',
      entry: { ...original[0], payload: { n: 1 }, event_type: 'platform:shop:order:created' },
    },
  ]);
  const added = () => bus.drain(stat, { env_id: env, stream_family: 'bus' });
  await eventually(async () =>
    (await added()).map(({ event_type, payload }) => [event_type, (payload as { dlq_id?: string }).dlq_id]),
  ).toEqual([['platform:bus:dlq:added', items[0]?.dlq_id]]);
});

test('BUS-004 an entry that no try can help goes straight to the dead letters, and one that sixteen consumers left behind', async () => {
  const env = newEnv();
  await bus.produce(shop, env, 1);
  expect(await nack(env, [(await readOne(env))?.message_id as string], { dead_letter: true, reason: 'slug_taken: no' })).toEqual({
    queued: 1,
    lost: [],
  });
  expect((await letters(env)).items).toMatchObject([{ reason: 'slug_taken: no', attempts: 1 }]);
  await bus.produce(shop, env, 2);
  const left = (await readOne(env))?.message_id as string;
  await bus.store.client.call('XCLAIM', `bus:{${env}}:app`, 'mail.g', 'gone', 0, left, 'IDLE', 61_000, 'RETRYCOUNT', 15, 'JUSTID');
  expect(await readOne(env)).toMatchObject({ delivery_count: 16 });
  await bus.store.client.call('XCLAIM', `bus:{${env}}:app`, 'mail.g', 'gone', 0, left, 'IDLE', 61_000, 'JUSTID');
  expect(await bus.consume(mail, { env_id: env })).toEqual([]);
  expect((await letters(env)).items[0]).toMatchObject({ reason: 'max_deliveries', attempts: 16, entry: { payload: { n: 2 } } });
});

test('H-25 a dead letter keeps the reason, time and consumer of every attempt, those before idle redeliveries too', async () => {
  const env = newEnv();
  await bus.produce(shop, env, 1);
  await nack(env, [(await readOne(env))?.message_id as string], { retry_after_secs: 0, reason: 'first fault', consumer: 'default' });
  await bus.clock.advance('10s');
  const copy = (await readOne(env))?.message_id as string;
  await bus.store.client.call('XCLAIM', `bus:{${env}}:app`, 'mail.g', 'gone', 0, copy, 'IDLE', 61_000, 'RETRYCOUNT', 16, 'JUSTID');
  expect(await bus.consume(mail, { env_id: env })).toEqual([]);
  expect((await letters(env)).items[0]).toMatchObject({
    reason: 'max_deliveries',
    reasons: ['first fault', 'max_deliveries'],
    history: [{ reason: 'first fault', consumer: 'default', at: expect.stringMatching(/Z$/) }, { reason: 'max_deliveries' }],
    entry: { payload: { n: 1 } },
  });
});

test('several processes reap the same retries at once: each entry comes back once', async () => {
  await using other = await RunningBus.start(stores);
  const env = newEnv();
  for (let n = 0; n < 50; n++) await bus.produce(shop, env, n);
  const ids = (await bus.consume(mail, { env_id: env })).map(({ message_id }) => message_id);
  await nack(env, ids, { retry_after_secs: 0 });
  await Promise.all([bus.clock.advance('10s'), other.clock.advance('10s')]);
  await bus.clock.advance('10s');
  expect(
    (await bus.drain(mail, { env_id: env })).map(({ payload }) => payload.n).sort((left, right) => Number(left) - Number(right)),
  ).toEqual(Array.from({ length: 50 }, (_, n) => n));
});
