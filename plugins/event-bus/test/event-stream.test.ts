import { eventually, openTestStores, type TestStores } from '@platform/testing';
import { afterAll, beforeAll, expect, test, vi } from 'vitest';
import { EventSource } from './fixtures/event-source.ts';
import { newEnv, person, RunningBus, workload } from './fixtures/running-bus.ts';

vi.setConfig({ testTimeout: 30_000, hookTimeout: 60_000 });

const COMMANDS = 512;
const shop = workload('shop');
const mail = workload('mail');
let stores: TestStores;
let bus: RunningBus;
beforeAll(async () => {
  stores = await openTestStores();
  bus = await RunningBus.start(stores);
  bus.host.know(mail);
  // The server keeps its last commands for a test to read.
  await bus.store.client.config('SET', 'slowlog-log-slower-than', '0');
  await bus.store.client.config('SET', 'slowlog-max-len', String(COMMANDS));
});
afterAll(async () => {
  await bus[Symbol.asyncDispose]();
  await stores[Symbol.asyncDispose]();
});

const pendingOf = async (env: string) => Number((await bus.store.client.xpending(`bus:{${env}}:app`, 'mail.tab'))[0]);
/** What the server was told about an environment's stream, the newest first. */
async function commands(env: string): Promise<string[][]> {
  const log = (await bus.store.client.call('SLOWLOG', 'GET', COMMANDS)) as [number, number, number, string[]][];
  return log.flatMap(([, , , [name = '', ...rest]]) => (rest.includes(`bus:{${env}}:app`) ? [[name.toUpperCase(), ...rest]] : []));
}
/** The first read of the group is over. A consumer without entries shows only from Redis 7.2 on. */
async function grouped(env: string): Promise<void> {
  await eventually(async () => {
    const names = (await commands(env)).map(([name]) => name);
    return names.indexOf('XREADGROUP') >= 0 && names.indexOf('XREADGROUP') < names.indexOf('XGROUP');
  }).toBe(true);
}
const streamOf = (env: string) => `/v1/consume/sse?env_id=${env}&stream_family=app&consumer_group=tab`;
/** An open stream that has read once. */
async function open(env: string): Promise<EventSource> {
  const source = await EventSource.open(bus.host, streamOf(env), { persona: mail });
  await grouped(env);
  return source;
}
const clients = async () => ((await bus.call('metrics', shop)).value as { sse_clients: number }).sse_clients;
/** On the stream without anybody being told: as when the message of another process is lost. */
const appendUntold = (env: string, n: number) =>
  bus.store.client.xadd(
    `bus:{${env}}:app`,
    '*',
    ...[
      'event_type',
      'platform:shop:order:created',
      'payload',
      `{"n":${n}}`,
      'created_at',
      'x',
      'produced_at',
      'x',
      'produced_by',
      'shop',
      'publisher_subject',
      'shop',
      'correlation_id',
      'c',
      'idempotency_key',
      `k-${n}`,
    ],
  );
const take = async (source: EventSource, count: number) => {
  const numbers: unknown[] = [];
  while (numbers.length < count) numbers.push((await source.next()).data?.['payload']?.n);
  return numbers;
};

test('BUS-047 BUS-049 BUS-064: events come as frames from the moment the group is made, and are acknowledged by request', async () => {
  const env = newEnv();
  const ada = person(env);
  await bus.produce(shop, env, 1);
  using events = await EventSource.open(bus.host, '/v1/consume/sse?stream_family=app&consumer_group=tab', { persona: ada });
  expect(events.type).toBe('text/event-stream');
  await eventually(async () => ((await bus.store.client.xinfo('GROUPS', `bus:{${env}}:app`)) as unknown[]).length).toBe(1);
  const { message_id } = await bus.produce(shop, env, 2);
  const frame = await events.next();
  expect(frame).toMatchObject({
    id: message_id,
    event: 'platform:shop:order:created',
    data: { message_id, payload: { n: 2 }, env_id: env, stream_family: 'app' },
  });
  expect((await bus.call('ack', ada, { body: { stream_family: 'app', consumer_group: 'tab', message_id } })).value).toEqual({
    acked: 1,
    lost: [],
  });
});

test('BUS-048 BUS-060: the token may come in the query; what an earlier stream left comes again, counted', async () => {
  const env = newEnv();
  {
    using first = await EventSource.open(bus.host, `${streamOf(env)}&token=${bus.host.mint.token(mail, 'bus')}`);
    await grouped(env);
    await bus.produce(shop, env, 1);
    expect((await first.next()).data).toMatchObject({ payload: { n: 1 }, delivery_count: 1 });
  }
  await eventually(clients).toBe(0);
  const [[id]] = (await bus.store.client.call('XPENDING', `bus:{${env}}:app`, 'mail.tab', '-', '+', 10)) as [[string]];
  await bus.store.client.call('XCLAIM', `bus:{${env}}:app`, 'mail.tab', 'gone', 0, id, 'IDLE', 61_000, 'JUSTID');
  using second = await EventSource.open(bus.host, streamOf(env), { persona: mail });
  expect((await second.next()).data).toMatchObject({ payload: { n: 1 }, delivery_count: 2 });
  expect(await clients()).toBe(1);
});

test('BUS-061 a read that nobody woke comes after ten seconds, not after five', async () => {
  const env = newEnv();
  using source = await open(env);
  await appendUntold(env, 1);
  // The sweep asks for the number of pending entries.
  const sweeps = async () => (await commands(env)).filter(([name, ...rest]) => name === 'XPENDING' && rest.length === 2).length;
  const before = await sweeps();
  await bus.clock.advance('5s');
  await eventually(sweeps).toBeGreaterThan(before);
  expect(await pendingOf(env)).toBe(0);
  await bus.clock.advance('5s');
  expect(await take(source, 1)).toEqual([1]);
});

test('BUS-061 a read takes ten entries and no more, and the rest with the next reads', async () => {
  const env = newEnv();
  using source = await open(env);
  for (let n = 0; n < 25; n++) await appendUntold(env, n);
  await bus.clock.advance('10s');
  expect(await take(source, 25)).toEqual(Array.from({ length: 25 }, (_, n) => n));
  const reads = (await commands(env)).filter(([name]) => name === 'XREADGROUP').map(command => command[command.indexOf('COUNT') + 1]);
  expect(reads.length).toBeGreaterThanOrEqual(3);
  expect(new Set(reads)).toEqual(new Set(['10']));
});

test('BUS-060 the sweep of every five seconds takes what was pending for a minute, twenty at a time', async () => {
  const env = newEnv();
  using source = await open(env);
  for (let n = 0; n < 25; n++) await appendUntold(env, n);
  const ids = (
    (await bus.store.client.xreadgroup('GROUP', 'mail.tab', 'gone', 'COUNT', 25, 'STREAMS', `bus:{${env}}:app`, '>')) as [
      string,
      [string, string[]][],
    ][]
  ).flatMap(([, rows]) => rows.map(([id]) => id));
  const byConsumer = async () =>
    new Set(
      ((await bus.store.client.call('XPENDING', `bus:{${env}}:app`, 'mail.tab', '-', '+', 50)) as [string, string][])
        .filter(([, consumer]) => consumer !== 'gone')
        .map(([id]) => id),
    ).size;
  await bus.store.client.call('XCLAIM', `bus:{${env}}:app`, 'mail.tab', 'gone', 0, ...ids, 'IDLE', 59_000, 'JUSTID');
  await bus.clock.advance('5s');
  expect(await byConsumer()).toBe(0);
  await bus.store.client.call('XCLAIM', `bus:{${env}}:app`, 'mail.tab', 'gone', 0, ...ids, 'IDLE', 61_000, 'JUSTID');
  await bus.clock.advance('5s');
  expect(await take(source, 20)).toEqual(Array.from({ length: 20 }, (_, n) => n));
  expect(await byConsumer()).toBe(20);
  await bus.clock.advance('5s');
  expect(await take(source, 5)).toEqual([20, 21, 22, 23, 24]);
});

test('BUS-062 a comment keeps the line warm every fifteen seconds', async () => {
  using source = await open(newEnv());
  await bus.clock.advance('14s');
  expect(source.text).not.toContain('heartbeat');
  await bus.clock.advance('1s');
  await eventually(() => source.comments).toEqual(['heartbeat']);
  await bus.clock.advance('30s');
  await eventually(() => source.comments).toEqual(['heartbeat', 'heartbeat', 'heartbeat']);
});

test('BUS-063 more than a hundred unacknowledged entries are a warning in the log, once while it lasts; a hundred are none', async () => {
  const env = newEnv();
  using source = await open(env);
  const warnings = () => bus.host.logged.filter(({ level, env_id }) => level === 'warn' && env_id === env).map(line => line['pending']);
  for (let n = 0; n < 100; n++) await appendUntold(env, n);
  await bus.clock.advance('10s');
  await take(source, 100);
  await bus.clock.advance('5s');
  await eventually(() => pendingOf(env)).toBe(100);
  await bus.produce(shop, env, 100);
  expect(warnings()).toEqual([]);
  await take(source, 1);
  await bus.clock.advance('5s');
  await eventually(warnings).toEqual([101]);
  await bus.clock.advance('20s');
  await bus.produce(shop, env, 101);
  await take(source, 1);
  expect(warnings()).toEqual([101]);
});

test('H-22 a stream whose events were cut before they were read says which, before it goes on; so does a pull, once', async () => {
  await using small = await RunningBus.start(stores, { streamEntries: 1_000 });
  const env = newEnv();
  const at = { env_id: env, stream_family: 'app', consumer_group: 'tab' };
  await small.produce(shop, env, 0);
  const [read] = await small.consume(mail, at);
  await small.consume(mail, { ...at, consumer_group: 'pull', count: 1 });
  for (const group of ['tab', 'pull'])
    await small.call('ack', mail, { body: { ...at, consumer_group: group, message_id: read?.message_id } });
  // Of a group that has read everything nothing is missed.
  await small.fill(shop, env, 1_600);
  await small.drain(mail, { ...at, consumer_group: 'quick' });
  await small.clock.advance('60s');
  const [first] = (await small.store.client.xrange(`bus:{${env}}:app`, '-', '+', 'COUNT', 1)) as [[string, string[]]];
  expect(await small.store.client.xlen(`bus:{${env}}:app`)).toBeLessThan(1_200);

  using source = await EventSource.open(small.host, streamOf(env), { persona: mail });
  const gap = await source.next();
  expect(gap).toMatchObject({
    event: 'gap',
    data: { stream: `bus:${env}:app`, env_id: env, stream_family: 'app', group: 'mail.tab', after: read?.message_id },
  });
  const [ms, seq] = String(gap.data?.['through']).split('-').map(Number) as [number, number];
  const [firstMs, firstSeq] = first[0].split('-').map(Number) as [number, number];
  expect(ms < firstMs || (ms === firstMs && seq < firstSeq)).toBe(true);
  expect((await source.next()).id).toBe(first[0]);

  const pull = async (group: string, env_id = env) =>
    (await small.call('consume', mail, { body: { env_id, stream_family: 'app', consumer_group: group, count: 1, consumer: 'p' } }))
      .value as { gaps?: object[]; entries: unknown[] };
  expect(await pull('pull')).toMatchObject({
    gaps: [{ group: 'mail.pull', after: read?.message_id, through: gap.data?.['through'] }],
    entries: [{ message_id: first[0] }],
  });
  expect((await pull('pull')).gaps).toBeUndefined();
  expect((await pull('quick')).gaps).toBeUndefined();
});

test('H-22 a consumer of all environments hears of its gaps as well', async () => {
  await using small = await RunningBus.start(stores, { streamEntries: 1_000 });
  const env = newEnv();
  const body = { env_id: '*', stream_family: 'gappy', consumer_group: 'all', count: 1, consumer: 'p' };
  const consume = async () =>
    (await small.call('consume', mail, { body })).value as { gaps?: object[]; entries: { message_id: string; env_id: string }[] };
  await small.produce(shop, env, 0, { stream_family: 'gappy' });
  const [read] = (await consume()).entries;
  await small.call('ack', mail, { body: { env_id: env, stream_family: 'gappy', consumer_group: 'all', message_id: read?.message_id } });
  await small.fill(shop, env, 1_600, { stream_family: 'gappy' });
  await small.clock.advance('60s');
  expect(await consume()).toMatchObject({ gaps: [{ stream: `bus:${env}:gappy`, group: 'mail.all', after: read?.message_id }] });
  await small.clock.advance('60s');
  expect((await consume()).gaps).toBeUndefined();
});

test('H-24 a closed stream leaves no consumer behind, unless entries wait in its name', async () => {
  const env = newEnv();
  const names = async () => ((await bus.store.client.call('XINFO', 'CONSUMERS', `bus:{${env}}:app`, 'mail.tab')) as unknown[]).length;
  {
    using _empty = await open(env);
  }
  await eventually(names).toBe(0);
  {
    using source = await open(env);
    await bus.produce(shop, env, 1);
    await take(source, 1);
  }
  await eventually(clients).toBe(0);
  expect([await names(), await pendingOf(env)]).toEqual([1, 1]);
});
