import { openTestStores, type TestStores } from '@platform/testing';
import { afterAll, beforeAll, expect, test, vi } from 'vitest';
import { newEnv, RunningBus, workload } from '../fixtures/running-bus.ts';

vi.setConfig({ testTimeout: 30_000, hookTimeout: 60_000 });

const shop = workload('shop');
const mail = workload('mail');
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

const settle = async (how: 'ack' | 'nack' | 'extend', env: string, ids: readonly string[], more: object = {}) =>
  (await bus.call(how, mail, { body: { env_id: env, stream_family: 'app', consumer_group: 'g', message_ids: ids, ...more } }))
    .value as Record<string, unknown>;
const pending = async (env: string) =>
  ((await bus.store.client.call('XPENDING', `bus:{${env}}:app`, 'mail.g', '-', '+', 10)) as [string, string, number, number][]).map(
    ([id, consumer, idle, times]) => ({ id, consumer, idle, times }),
  );
/** As if the last word about entries had come so long ago. */
const idle = (env: string, consumer: string, ids: readonly string[], ms: number) =>
  bus.store.client.call('XCLAIM', `bus:{${env}}:app`, 'mail.g', consumer, 0, ...ids, 'IDLE', ms, 'JUSTID');
const taken = async (env: string, consumer: string) =>
  (await bus.consume(mail, { env_id: env, consumer })).map(({ message_id }) => message_id);

test('H-21 a handler that says "still working" keeps its entries past the minute, and their count of deliveries stays', async () => {
  const env = newEnv();
  for (const n of [1, 2]) await bus.produce(shop, env, n);
  const [slow = '', left = ''] = await taken(env, 'one');
  await idle(env, 'one', [slow, left], 59_000);
  expect(await settle('extend', env, [slow], { consumer: 'one' })).toEqual({ extended: 1, lease_secs: 60, lost: [] });
  const [first, second] = await pending(env);
  expect(first).toMatchObject({ id: slow, consumer: 'one', times: 1 });
  expect(first?.idle).toBeLessThan(50_000);
  expect(second?.idle).toBeGreaterThanOrEqual(59_000);
  await idle(env, 'one', [left], 61_000);
  expect(await taken(env, 'two')).toEqual([left]);
});

test('H-21 who lost a lease is told so by extension, acknowledgement and refusal, and what the next one has is not touched', async () => {
  const env = newEnv();
  await bus.produce(shop, env, 1);
  const [id = ''] = await taken(env, 'one');
  await idle(env, 'one', [id], 61_000);
  expect(await taken(env, 'two')).toEqual([id]);
  expect(await settle('extend', env, [id], { consumer: 'one' })).toEqual({ extended: 0, lease_secs: 60, lost: [id] });
  expect(await settle('ack', env, [id], { consumer: 'one' })).toEqual({ acked: 0, lost: [id] });
  expect(await settle('nack', env, [id], { consumer: 'one' })).toEqual({ queued: 0, lost: [id] });
  expect(await settle('nack', env, [id], { consumer: 'one', dead_letter: true })).toEqual({ queued: 0, lost: [id] });
  expect(await pending(env)).toMatchObject([{ id, consumer: 'two', times: 2 }]);
  expect(await settle('ack', env, [id], { consumer: 'two' })).toEqual({ acked: 1, lost: [] });
  // Settled by another one meanwhile: lost as well.
  expect(await settle('ack', env, [id], { consumer: 'one' })).toEqual({ acked: 0, lost: [id] });
});

test('an acknowledgement without a consumer is the group’s; unknown ids, groups and streams are lost and break nothing', async () => {
  const env = newEnv();
  await bus.produce(shop, env, 1);
  const [id = ''] = await taken(env, 'one');
  expect(await settle('extend', env, [id, '1-1', 'nonsense'])).toEqual({ extended: 1, lease_secs: 60, lost: ['1-1', 'nonsense'] });
  expect(await settle('ack', env, [id], { consumer_group: 'never-made' })).toEqual({ acked: 0, lost: [id] });
  expect(await settle('ack', newEnv(), [id])).toEqual({ acked: 0, lost: [id] });
  expect(await settle('ack', env, [id])).toEqual({ acked: 1, lost: [] });
});

test('of twelve acknowledgements at once one counts', async () => {
  const env = newEnv();
  await bus.produce(shop, env, 1);
  const [id = ''] = await taken(env, 'one');
  const answers = await Promise.all(Array.from({ length: 12 }, () => settle('ack', env, [id], { consumer: 'one' })));
  expect(answers.map(({ acked }) => acked).sort()).toEqual([...Array(11).fill(0), 1]);
});

test('a successor under the same name reads what its predecessor had in its hands, in order, in every environment; what was settled is not among it', async () => {
  const [one, two] = [newEnv(), newEnv()];
  for (const env of [one, two]) for (const n of [1, 2, 3]) await bus.produce(shop, env, n, { stream_family: 'held' });
  const at = { env_id: '*', stream_family: 'held', consumer: 'ordered' };
  const read = await bus.consume(mail, at);
  expect(read).toHaveLength(6);
  const first = read.find(({ env_id, payload }) => env_id === one && payload.n === 1);
  await bus.call('ack', mail, { body: { env_id: one, stream_family: 'held', consumer_group: 'g', message_id: first?.message_id } });
  await bus.produce(shop, one, 4, { stream_family: 'held' });
  const again = await bus.consume(mail, { ...at, pending: true });
  expect(again.filter(({ env_id }) => env_id === one).map(({ payload }) => payload.n)).toEqual([2, 3]);
  expect(again.filter(({ env_id }) => env_id === two).map(({ payload }) => payload.n)).toEqual([1, 2, 3]);
  expect(await bus.consume(mail, { ...at, consumer: 'somebody', pending: true })).toEqual([]);
  expect(
    (await bus.consume(mail, { env_id: two, stream_family: 'held', consumer: 'ordered', pending: true })).map(
      ({ delivery_count }) => delivery_count,
    ),
  ).toEqual([2, 2, 2]);
});

test('H-25 tries that a consumer made by itself are in the history of the dead letter', async () => {
  const env = newEnv();
  await bus.produce(shop, env, 1);
  const [id = ''] = await taken(env, 'one');
  const earlier = [{ at: '2026-01-01T00:00:00.000Z', reason: 'first' }];
  await settle('nack', env, [id], { consumer: 'one', dead_letter: true, reason: 'second', earlier });
  const { items } = (await bus.call('listDeadLetters', shop, { query: { env_id: env } })).value as {
    items: { reasons: string[]; attempts: number }[];
  };
  expect(items).toMatchObject([{ reasons: ['first', 'second'], attempts: 2 }]);
});
