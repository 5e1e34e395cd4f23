import { afterAll, beforeAll, expect, test, vi } from 'vitest';
import { eventually } from '../../../kernel/storage/fixtures/eventually.ts';
import { EventSource } from './fixtures/event-source.ts';
import { bearer, BusProcess, newEnv, person, Stores, workload } from './harness.ts';

vi.setConfig({ testTimeout: 30_000, hookTimeout: 60_000 });

const shop = workload('shop');
const mail = workload('mail');
let stores: Stores;
let bus: BusProcess;
let origin: string;
beforeAll(async () => {
  stores = await Stores.start();
  bus = await BusProcess.start(stores);
  origin = await bus.listen();
  await bus.store.client.config('SET', 'slowlog-log-slower-than', '0');
});
afterAll(async () => {
  await bus[Symbol.asyncDispose]();
  await stores[Symbol.asyncDispose]();
});

const pendingOf = async (env: string) => Number((await bus.store.client.xpending(`bus:{${env}}:app`, 'mail.tab'))[0]);
/**
 * The first read of the group is over. The server's log of slow commands says so, set to log all: a consumer without entries shows only
 * from Redis 7.2 on.
 */
async function grouped(env: string): Promise<void> {
  const key = `bus:{${env}}:app`;
  await eventually(async () => {
    const log = (await bus.store.client.call('SLOWLOG', 'GET', '128')) as [number, number, number, string[]][];
    const latest = (command: string) => log.findIndex(([, , , [name, ...rest]]) => name?.toUpperCase() === command && rest.includes(key));
    // The newest comes first.
    return latest('XREADGROUP') >= 0 && latest('XREADGROUP') < latest('XGROUP');
  }).toBe(true);
}
/** An open stream that has read once. */
async function open(env: string): Promise<EventSource> {
  const source = await EventSource.open(`${origin}/v1/consume/sse?env_id=${env}&stream_family=app&consumer_group=tab`, {
    authorization: bearer(mail),
  });
  await grouped(env);
  return source;
}
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

test('BUS-061 a read that nobody woke comes after ten seconds, not after five', async () => {
  const env = newEnv();
  using source = await open(env);
  await appendUntold(env, 1);
  // The sweep asks for the number of pending entries by a call of its own.
  const sweeps = vi.spyOn(bus.store.client, 'call');
  const before = sweeps.mock.calls.length;
  await bus.clock.advance('5s');
  await eventually(() => sweeps.mock.calls.length).toBeGreaterThan(before);
  expect(await pendingOf(env)).toBe(0);
  await bus.clock.advance('5s');
  expect(await take(source, 1)).toEqual([1]);
  sweeps.mockRestore();
});

test('BUS-061 a read takes ten entries and no more, and the rest with the next reads', async () => {
  const env = newEnv();
  using source = await open(env);
  const reads: number[] = [];
  const calls = vi.spyOn(bus.store.client, 'call');
  for (let n = 0; n < 25; n++) await appendUntold(env, n);
  await bus.clock.advance('10s');
  expect(await take(source, 25)).toEqual(Array.from({ length: 25 }, (_, n) => n));
  for (const [command, ...args] of calls.mock.calls as unknown as string[][]) if (command === 'XREADGROUP') reads.push(Number(args[4]));
  calls.mockRestore();
  expect(reads.length).toBeGreaterThanOrEqual(3);
  expect(new Set(reads)).toEqual(new Set([10]));
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
  const warnings = () =>
    bus.logged.filter(({ level, fields }) => level === 'warn' && fields['env_id'] === env).map(({ fields }) => fields['pending']);
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
  await using small = await BusProcess.start(stores, { config: { streamEntries: 100 } });
  const env = newEnv();
  const at = { env_id: env, stream_family: 'app', consumer_group: 'tab' };
  await small.produce(shop, env, 0);
  const [read] = await small.consume(mail, at);
  await small.consume(mail, { ...at, consumer_group: 'pull', count: 1 });
  for (const group of ['tab', 'pull'])
    await small.call('ack', mail, { body: { ...at, consumer_group: group, message_id: read?.message_id } });
  // Of a group that has read everything nothing is missed.
  await Promise.all(Array.from({ length: 600 }, (_, n) => small.produce(shop, env, n + 1)));
  await small.drain(mail, { ...at, consumer_group: 'quick' });
  await small.clock.advance('60s');
  const [first] = (await small.store.client.xrange(`bus:{${env}}:app`, '-', '+', 'COUNT', 1)) as [[string, string[]]];
  expect(await small.store.client.xlen(`bus:{${env}}:app`)).toBeLessThan(300);

  using source = await EventSource.open(`${await small.listen()}/v1/consume/sse?env_id=${env}&stream_family=app&consumer_group=tab`, {
    authorization: bearer(mail),
  });
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
  await using small = await BusProcess.start(stores, { config: { streamEntries: 100 } });
  const env = newEnv();
  const body = { env_id: '*', stream_family: 'gappy', consumer_group: 'all', count: 1, consumer: 'p' };
  const consume = async () =>
    (await small.call('consume', mail, { body })).value as { gaps?: object[]; entries: { message_id: string; env_id: string }[] };
  await small.produce(shop, env, 0, { stream_family: 'gappy' });
  const [read] = (await consume()).entries;
  await small.call('ack', mail, { body: { env_id: env, stream_family: 'gappy', consumer_group: 'all', message_id: read?.message_id } });
  await Promise.all(Array.from({ length: 600 }, (_, n) => small.produce(shop, env, n, { stream_family: 'gappy' })));
  await small.clock.advance('60s');
  expect(await consume()).toMatchObject({ gaps: [{ stream: `bus:${env}:gappy`, group: 'mail.all', after: read?.message_id }] });
  await small.clock.advance('60s');
  expect((await consume()).gaps).toBeUndefined();
});

test('BUS-048 H-06 H-13 a ticket opens one stream once, within thirty seconds, as who minted it: of twelve at once one is let in', async () => {
  const env = newEnv();
  const mint = async (as = mail) => {
    const answer = await fetch(`${origin}/v1/consume/sse/ticket`, { method: 'POST', headers: { authorization: bearer(as) } });
    expect(answer.status).toBe(201);
    return ((await answer.json()) as { ticket: string; expires_in: number }).ticket;
  };
  const url = (ticket: string, to = env) => `${origin}/v1/consume/sse?env_id=${to}&stream_family=app&consumer_group=tab&ticket=${ticket}`;
  const status = async (address: string) => {
    const closing = new AbortController();
    const answer = await fetch(address, { headers: { accept: 'text/event-stream' }, signal: closing.signal });
    closing.abort();
    return answer.status;
  };
  const ticket = await mint();
  expect((await Promise.all(Array.from({ length: 12 }, () => status(url(ticket))))).sort()).toEqual([200, ...Array(11).fill(401)]);
  const late = await mint();
  await bus.clock.advance('30s');
  expect(await status(url(late))).toBe(401);
  expect(await status(url('nonsense'))).toBe(401);
  // It is the minter's: another environment stays closed to a person.
  expect(await status(url(await mint(person(newEnv()))))).toBe(403);
  // And opens no other door.
  expect(
    (await fetch(`${origin}/v1/streams?env_id=${env}&ticket=${await mint()}`, { headers: { accept: 'text/event-stream' } })).status,
  ).toBe(401);
  const heard = newEnv();
  using source = await EventSource.open(url(await mint(), heard), {});
  await grouped(heard);
  await bus.produce(shop, heard, 1);
  expect(await take(source, 1)).toEqual([1]);
});

test('BUS-048 H-06 neither a token nor a ticket of the query reaches a log', async () => {
  const token = bearer(mail).slice(7);
  const closing = new AbortController();
  for (const query of [
    `token=${token}&stream_family=dlq`,
    `token=${token}&stream_family=app&env_id=${newEnv()}`,
    'ticket=a-ticket-that-nobody-minted&stream_family=app',
  ]) {
    await fetch(`${origin}/v1/consume/sse?consumer_group=tab&${query}`, {
      headers: { accept: 'text/event-stream' },
      signal: closing.signal,
    });
  }
  closing.abort();
  const all = JSON.stringify(bus.logged);
  expect(all.length).toBeGreaterThan(2);
  expect(all).not.toContain(token);
  expect(all).not.toContain('a-ticket-that-nobody-minted');
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
  await eventually(async () => ((await bus.call('metrics', shop)).value as { sse_clients: number }).sse_clients).toBe(0);
  expect([await names(), await pendingOf(env)]).toEqual([1, 1]);
});
