import { openTestStores, type TestStores } from '@platform/testing';
import { afterAll, beforeAll, expect, test, vi } from 'vitest';
import { newEnv, RunningBus, workload } from './fixtures/running-bus.ts';

vi.setConfig({ testTimeout: 30_000, hookTimeout: 60_000 });

const shop = workload('shop');
const mail = workload('mail');
let stores: TestStores;
let bus: RunningBus;
beforeAll(async () => {
  stores = await openTestStores();
});
afterAll(async () => {
  await stores[Symbol.asyncDispose]();
});

const lengthOf = (env: string) => bus.store.client.xlen(`bus:{${env}}:app`);

test('G-BUS-11 what an unseen group has pending is cut after a day, named as its gap; what a seen one has pending is kept, by age and by number', async () => {
  bus = await RunningBus.start(stores, { streamEntries: 1_000 });
  await using _bus = bus;
  const env = newEnv();
  await bus.fill(shop, env, 1_600);
  const [first] = await bus.consume(mail, { env_id: env, count: 1 });
  // Seven days go by at once, and the group was seen a moment ago on the store's own clock: to us a week ago.
  await bus.clock.advance('60s');
  expect(await lengthOf(env)).toBe(1_600);
  await bus.clock.leap('23h');
  expect(await lengthOf(env)).toBe(1_600);
  await bus.clock.leap('2h');
  expect(await lengthOf(env)).toBeLessThan(1_200);
  const { value } = await bus.call('consume', mail, { body: { env_id: env, stream_family: 'app', consumer_group: 'g', count: 1 } });
  const { gaps } = value as { gaps: { after: string; through: string }[] };
  const [ms, seq] = (first?.message_id ?? '').split('-').map(Number) as [number, number];
  expect(gaps).toMatchObject([{ group: 'mail.g', after: seq > 0 ? `${ms}-${seq - 1}` : `${ms - 1}-18446744073709551615` }]);
});

test('G-BUS-11 entries go after seven days, and a stream that outgrew its length is cut to it in one pass', async () => {
  bus = await RunningBus.start(stores, { streamEntries: 1_000 });
  await using _bus = bus;
  const [old, long] = [newEnv(), newEnv()];
  await bus.fill(shop, old, 300);
  const pipeline = bus.store.client.pipeline();
  for (let n = 0; n < 25_000; n++) pipeline.xadd(`bus:{${long}}:app`, '*', 'event_type', 'a:b:c:d', 'payload', '{}');
  await pipeline.exec();
  await bus.fill(shop, long, 1);
  await bus.clock.advance('60s');
  expect(await lengthOf(long)).toBeLessThan(1_200);
  expect(await lengthOf(old)).toBe(300);
  await bus.clock.leap('8d');
  expect(await lengthOf(old)).toBeLessThan(100);
});

test('streams are cut to their length, but not below what an active group has pending', async () => {
  const [free, held] = [newEnv(), newEnv()];
  await using small = await RunningBus.start(stores, { streamEntries: 1_000 });
  for (const env of [free, held]) await small.fill(shop, env, 1_600);
  const [first] = await small.consume(mail, { env_id: held, count: 1 });
  await small.clock.advance('60s');
  const lengths = await Promise.all([free, held].map(env => small.store.client.xlen(`bus:{${env}}:app`)));
  expect(lengths[0]).toBeLessThan(1_200);
  expect(lengths[1]).toBe(1_600);
  await small.call('ack', mail, { body: { env_id: held, stream_family: 'app', consumer_group: 'g', message_id: first?.message_id } });
  await small.clock.advance('60s');
  expect(await small.store.client.xlen(`bus:{${held}}:app`)).toBeLessThan(1_200);
});
