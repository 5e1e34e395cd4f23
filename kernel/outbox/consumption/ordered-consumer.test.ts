import { type Logger, ProblemError } from '@platform/sdk';
import { expect, test } from 'vitest';
import { ManualClock } from '../../base/clock.ts';
import { eventually } from '../../storage/fixtures/eventually.ts';
import type { StreamEntry } from './consumer-bus.ts';
import { HandBus } from '../fixtures/hand-bus.ts';
import { OrderedConsumer } from './ordered-consumer.ts';

const entry = (n: number, order: string, env = 'env'): StreamEntry => ({
  message_id: `${n}-0`,
  event_type: 'platform:shop:order:changed',
  env_id: env,
  stream_family: 'app',
  payload: { order },
  correlation_id: 'c',
  idempotency_key: `k-${n}`,
});
const write = () => () => undefined;
const log: Logger = { debug: write(), info: write(), warn: write(), error: write() };

/** A consumer whose handler does what the test says; the lead is free unless the test takes it. */
function started(handle: (entry: StreamEntry) => Promise<void>, options: { reconnectMs?: number } = {}) {
  const bus = new HandBus();
  const clock = new ManualClock();
  const lead = { free: true, held: true, taken: 0 };
  const consumer = new OrderedConsumer({
    bus,
    log,
    clock,
    service: 'mail',
    name: 'orders',
    family: 'app',
    event: '*',
    delivery: 'fleet',
    instance: 'i-1',
    handle,
    ordered: 'order',
    ...options,
    lead: async () => {
      if (!lead.free) return undefined;
      lead.taken += 1;
      lead.held = true;
      return { held: async () => lead.held, [Symbol.asyncDispose]: async () => undefined };
    },
  });
  return { bus, clock, lead, consumer };
}
const settled = (bus: HandBus) => bus.told.filter(({ how }) => how !== 'extend').map(({ how, ids }) => `${how} ${ids.join()}`);

test('an event that fails holds back those of its key and environment, and no other', async () => {
  const handled: string[] = [];
  let down = true;
  const { bus, clock, consumer } = started(async ({ message_id, payload, env_id }) => {
    handled.push(message_id);
    if (down && (payload as { order: string }).order === 'a' && env_id === 'env') throw new Error('not now');
  });
  await using _consumer = consumer;
  bus.give({ entries: [entry(1, 'a'), entry(2, 'a'), entry(3, 'b'), entry(4, 'a', 'other'), entry(5, 'a')] });
  await bus.until('ack', 2);
  expect(settled(bus)).toEqual(['ack 3-0', 'ack 4-0']);
  expect(handled.filter(id => ['2-0', '5-0'].includes(id))).toEqual([]);
  down = false;
  await eventually(async () => {
    await clock.advance('1s');
    return settled(bus).length;
  }).toBe(5);
  expect(settled(bus).slice(2)).toEqual(['ack 1-0', 'ack 2-0', 'ack 5-0']);
});

test('H-25 after five tries, or at once when no try can help, the event is a dead letter with the reason of every try, and the next of its key goes on', async () => {
  const { bus, clock, consumer } = started(async ({ message_id }) => {
    if (message_id === '1-0') throw new Error('still not');
    if (message_id === '2-0') throw new ProblemError('mail', 'bad_address', { status: 400, title: 'Bad address', retry: 'never' });
  });
  await using _consumer = consumer;
  bus.give({ entries: [entry(1, 'a'), entry(2, 'a'), entry(3, 'a')] });
  await eventually(async () => {
    await clock.advance('10s');
    return settled(bus);
  }).toEqual(['nack 1-0', 'nack 2-0', 'ack 3-0']);
  const [first, second] = bus.told
    .filter(({ how }) => how === 'nack')
    .map(({ request }) => request as unknown as { dead_letter: boolean; reason: string; earlier: { reason: string }[] });
  expect(first).toMatchObject({
    dead_letter: true,
    reason: 'retries_exhausted: still not',
    earlier: Array(4).fill({ reason: 'still not' }),
  });
  expect(second).toMatchObject({ dead_letter: true, reason: 'bad_address: Bad address', earlier: [] });
});

test('one process of the fleet leads; who takes over goes on with what the one before had read, and who lost the lead stops', async () => {
  const { bus, clock, lead, consumer } = started(async () => undefined);
  await using _consumer = consumer;
  await eventually(() => bus.asked.length).toBe(1);
  expect(bus.asked[0]).toMatchObject({ pending: true, consumer: 'ordered' });
  bus.give({ entries: [entry(1, 'a')] });
  await bus.until('ack', 1);
  await eventually(() => bus.asked.length).toBe(2);
  expect(bus.asked[1]).not.toHaveProperty('pending');
  // Another process leads for a while.
  lead.free = false;
  lead.held = false;
  bus.give({ entries: [] });
  await clock.advance('10s');
  expect(bus.asked).toHaveLength(2);
  lead.free = true;
  await eventually(async () => {
    await clock.advance('2s');
    return lead.taken;
  }).toBe(2);
  await eventually(() => bus.asked.length).toBe(3);
  expect(bus.asked[2]).toMatchObject({ pending: true });
});

test('APP-023 a consumer that says its pause asks a bus it could not reach again after just that: two seconds, however often it failed', async () => {
  const { bus, clock, consumer } = started(async () => undefined, { reconnectMs: 2_000 });
  await using _consumer = consumer;
  const asked: number[] = [];
  const reached = bus.consume.bind(bus);
  bus.consume = async (...args) => {
    asked.push(clock.now().getTime());
    if (asked.length < 6) throw new Error('nobody listens');
    return reached(...args);
  };
  for (let failures = 1; failures < 6; failures++) {
    await eventually(async () => asked.length).toBe(failures);
    await clock.advance('1999ms');
    expect(asked).toHaveLength(failures);
    await clock.advance('1ms');
  }
  await eventually(async () => asked.length).toBe(6);
  expect(asked.map((at, index) => at - (asked[index - 1] ?? at))).toEqual([0, 2_000, 2_000, 2_000, 2_000, 2_000]);
});
