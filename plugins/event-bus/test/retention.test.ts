import { afterAll, beforeAll, expect, test, vi } from 'vitest';
import { BusProcess, newEnv, Stores, workload } from './harness.ts';

vi.setConfig({ testTimeout: 30_000, hookTimeout: 60_000 });

const shop = workload('shop');
const mail = workload('mail');
let stores: Stores;
let bus: BusProcess;
beforeAll(async () => {
  stores = await Stores.start();
});
afterAll(async () => {
  await stores[Symbol.asyncDispose]();
});

const lengthOf = (env: string) => bus.store.client.xlen(`bus:{${env}}:app`);
const fill = (env: string, count = 600) => Promise.all(Array.from({ length: count }, (_, n) => bus.produce(shop, env, n)));

test('G-BUS-11 what an unseen group has pending is cut after a day, named as its gap; what a seen one has pending is kept, by age and by number', async () => {
  bus = await BusProcess.start(stores, { config: { streamEntries: 100 } });
  await using _bus = bus;
  const env = newEnv();
  await fill(env);
  const [first] = await bus.consume(mail, { env_id: env, count: 1 });
  // Seven days go by at once, and the group was seen a moment ago on the store's own clock: to us a week ago.
  await bus.clock.advance('60s');
  expect(await lengthOf(env)).toBe(600);
  await bus.clock.leap('23h');
  expect(await lengthOf(env)).toBe(600);
  await bus.clock.leap('2h');
  expect(await lengthOf(env)).toBeLessThan(300);
  const { value } = await bus.call('consume', mail, { body: { env_id: env, stream_family: 'app', consumer_group: 'g', count: 1 } });
  const { gaps } = value as { gaps: { after: string; through: string }[] };
  const [ms, seq] = (first?.message_id ?? '').split('-').map(Number) as [number, number];
  expect(gaps).toMatchObject([{ group: 'mail.g', after: seq > 0 ? `${ms}-${seq - 1}` : `${ms - 1}-18446744073709551615` }]);
});

test('G-BUS-11 entries go after seven days, and a stream that outgrew its length is cut to it in one pass', async () => {
  bus = await BusProcess.start(stores, { config: { streamEntries: 1_000 } });
  await using _bus = bus;
  const [old, long] = [newEnv(), newEnv()];
  await fill(old, 300);
  const pipeline = bus.store.client.pipeline();
  for (let n = 0; n < 25_000; n++) pipeline.xadd(`bus:{${long}}:app`, '*', 'event_type', 'a:b:c:d', 'payload', '{}');
  await pipeline.exec();
  await fill(long, 1);
  await bus.clock.advance('60s');
  expect(await lengthOf(long)).toBeLessThan(1_200);
  expect(await lengthOf(old)).toBe(300);
  await bus.clock.leap('8d');
  expect(await lengthOf(old)).toBeLessThan(100);
});
