import type { Logger } from '@platform/sdk';
import { expect, test } from 'vitest';
import { ManualClock } from '../base/clock.ts';
import { EventConsumer, type StreamEntry } from './event-consumer.ts';
import { HandBus } from './fixtures/hand-bus.ts';

const entry = (n: number): StreamEntry => ({
  message_id: `${n}-0`,
  event_type: 'platform:shop:order:created',
  env_id: 'env',
  stream_family: 'app',
  payload: { n },
  correlation_id: 'c',
  idempotency_key: `k-${n}`,
});

function started(handle: (entry: StreamEntry) => Promise<void>) {
  const bus = new HandBus();
  const clock = new ManualClock();
  const logged: { level: string; fields: Record<string, unknown>; message: string }[] = [];
  const write =
    (level: string) =>
    (fields: object, message: string): void =>
      void logged.push({ level, fields: { ...fields }, message });
  const log: Logger = { debug: write('debug'), info: write('info'), warn: write('warn'), error: write('error') };
  const consumer = new EventConsumer({ bus, log, clock, service: 'mail', name: 'orders', family: 'app', event: '*', delivery: 'fleet', instance: 'i-1', handle });
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
  expect(logged.filter(({ level }) => level === 'error')).toMatchObject([{ fields: { alert: 'events_missed', consumer: 'orders', gaps: [gap] } }]);
});
