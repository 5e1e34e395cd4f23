import type { Logger } from '@platform/sdk';
import { expect, test } from 'vitest';
import { ManualClock } from '../../base/clock.ts';
import { EventConsumer } from './event-consumer.ts';
import type { ConsumerOptions } from './consumer-options.ts';
import type { StreamEntry } from './consumer-bus.ts';
import { eventually } from '../../storage/fixtures/eventually.ts';
import { HandBus } from '../fixtures/hand-bus.ts';

const entry = (n: number): StreamEntry => ({
  message_id: `${n}-0`,
  event_type: 'platform:shop:order:created',
  env_id: 'env',
  stream_family: 'app',
  payload: { n },
  correlation_id: 'c',
  idempotency_key: `k-${n}`,
});

function started(handle: (entry: StreamEntry) => Promise<void>, more: Partial<ConsumerOptions> = {}) {
  const bus = new HandBus();
  const clock = new ManualClock();
  const logged: { level: string; fields: Record<string, unknown>; message: string }[] = [];
  const write =
    (level: string) =>
    (fields: object, message: string): void =>
      void logged.push({ level, fields: { ...fields }, message });
  const log: Logger = { debug: write('debug'), info: write('info'), warn: write('warn'), error: write('error') };
  const consumer = new EventConsumer({
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
    ...more,
  });
  return { bus, clock, logged, consumer };
}

test('H-21 while a handler is at work the bus hears of it every twenty seconds, for all that was read with it', async () => {
  const begun = Promise.withResolvers<void>();
  const done = Promise.withResolvers<void>();
  const { bus, clock, consumer } = started(async () => {
    begun.resolve();
    await done.promise;
  });
  await using _consumer = consumer;
  bus.give({ entries: [entry(1), entry(2)] });
  await begun.promise;
  await clock.advance('19s');
  expect(bus.told).toEqual([]);
  await clock.advance('41s');
  expect(bus.told).toMatchObject(Array(3).fill({ how: 'extend', ids: ['1-0', '2-0'], consumer: 'i-1' }));
  done.resolve();
  await bus.until('ack', 2);
  await clock.advance('60s');
  expect(bus.told.slice(3)).toMatchObject([
    { how: 'ack', ids: ['1-0'], consumer: 'i-1' },
    { how: 'ack', ids: ['2-0'], consumer: 'i-1' },
  ]);
});

test('H-21 what another consumer has taken is not handled here, and a lease that was lost during the handling is a line in the log', async () => {
  const begun = Promise.withResolvers<void>();
  const done = Promise.withResolvers<void>();
  const handled: string[] = [];
  const { bus, clock, logged, consumer } = started(async ({ message_id }) => {
    handled.push(message_id);
    begun.resolve();
    await done.promise;
  });
  await using _consumer = consumer;
  bus.give({ entries: [entry(1), entry(2), entry(3)] });
  await begun.promise;
  bus.lost = ['1-0', '2-0'];
  await clock.advance('20s');
  done.resolve();
  await bus.until('ack', 2);
  expect(handled).toEqual(['1-0', '3-0']);
  expect(logged.filter(({ level }) => level === 'warn')).toMatchObject([{ fields: { message_id: '1-0', consumer: 'orders' } }]);
});

test('H-22 events that were cut before they were read are an alert that names them', async () => {
  const { bus, logged, consumer } = started(async () => undefined);
  await using _consumer = consumer;
  const gap = { stream: 'bus:env:app', after: '1-0', through: '9-0' };
  bus.give({ entries: [entry(10)], gaps: [gap] });
  await bus.until('ack', 1);
  expect(logged.filter(({ level }) => level === 'error')).toMatchObject([
    { fields: { alert: 'events_missed', consumer: 'orders', gaps: [gap] } },
  ]);
});

test('with a concurrency, an environment whose handler hangs holds up no other, and order holds inside of each', async () => {
  const stuck = Promise.withResolvers<void>();
  const handled: string[] = [];
  const { bus, consumer } = started(
    async ({ env_id, message_id }) => {
      if (env_id === 'slow') await stuck.promise;
      handled.push(`${env_id} ${message_id}`);
    },
    { concurrency: 2 },
  );
  await using _consumer = consumer;
  const of = (env_id: string, n: number) => ({ ...entry(n), env_id });
  bus.give({ entries: [of('slow', 1), of('slow', 2), of('fast', 3), of('other', 4), of('fast', 5)] });
  await eventually(async () => handled).toEqual(['fast 3-0', 'fast 5-0', 'other 4-0']);
  stuck.resolve();
  await eventually(async () => handled.slice(3)).toEqual(['slow 1-0', 'slow 2-0']);
  await eventually(async () => bus.told.flatMap(({ ids }) => ids).toSorted()).toEqual(['1-0', '2-0', '3-0', '4-0', '5-0']);
});

test('acknowledgements that fall due while one is under way travel together', async () => {
  const taken = Promise.withResolvers<void>();
  const { bus, consumer } = started(async () => undefined);
  const { ack } = bus;
  let calls = 0;
  bus.ack = async request => {
    calls += 1;
    if (calls === 1) await taken.promise;
    return ack(request);
  };
  await using _consumer = consumer;
  bus.give({ entries: Array.from({ length: 20 }, (_, index) => entry(index + 1)) });
  await eventually(async () => calls).toBe(1);
  taken.resolve();
  await eventually(async () => bus.told.filter(({ how }) => how === 'ack').flatMap(({ ids }) => ids).length).toBe(20);
  expect(calls).toBeLessThanOrEqual(3);
});

test('a consumer of one event asks the bus for that type alone', async () => {
  const { bus, consumer } = started(async () => undefined, { event: 'platform:shop:order:created' });
  await using _consumer = consumer;
  await eventually(async () => bus.asked).toMatchObject([{ types: ['platform:shop:order:created'] }]);
});

test('a consumer that says its pause asks a bus it could not reach again after just that: two seconds, however often it failed', async () => {
  const asked: number[] = [];
  const clock = new ManualClock();
  const { promise: reached, resolve } = Promise.withResolvers<void>();
  const bus = new HandBus();
  const failing = {
    ack: bus.ack.bind(bus),
    nack: bus.nack.bind(bus),
    extend: bus.extend.bind(bus),
    close: bus.close.bind(bus),
    consume: (...args: Parameters<HandBus['consume']>) => {
      asked.push(clock.now().getTime());
      if (asked.length < 6) throw new Error('nobody listens');
      resolve();
      return bus.consume(...args);
    },
  };
  const { consumer } = started(async () => undefined, { bus: failing, clock, reconnectMs: 2_000 });
  await using _consumer = consumer;
  for (let failures = 1; failures < 6; failures++) {
    await eventually(async () => asked.length).toBe(failures);
    await clock.advance('1999ms');
    expect(asked).toHaveLength(failures);
    await clock.advance('1ms');
  }
  await reached;
  expect(asked.map((at, index) => at - (asked[index - 1] ?? at))).toEqual([0, 2_000, 2_000, 2_000, 2_000, 2_000]);
});

test('H-22 who hears the latest only is told once it does, and again when events were cut; who hears everything from the start, when they were cut', async () => {
  for (const [delivery, atFirst] of [
    ['process', 1],
    ['fleet', 0],
  ] as const) {
    let missed = 0;
    const { bus, consumer } = started(async () => undefined, { delivery, missed: () => void missed++ });
    await using _consumer = consumer;
    await eventually(() => bus.asked).toMatchObject([{ block_ms: 0 }]);
    expect(missed).toBe(0);
    bus.give({ entries: [] });
    await eventually(() => bus.asked.length).toBe(2);
    expect(missed).toBe(atFirst);
    expect(bus.asked[1]).toMatchObject({ block_ms: 10_000 });
    bus.give({ entries: [], gaps: [{ stream: 's' }] });
    await eventually(() => missed).toBe(atFirst + 1);
  }
});
