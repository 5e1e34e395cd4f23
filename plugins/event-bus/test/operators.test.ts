import { eventually, openTestStores, type TestStores } from '@platform/testing';
import { afterAll, beforeAll, expect, test, vi } from 'vitest';
import { newEnv, person, refusal, RunningBus, workload } from './fixtures/running-bus.ts';

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
  await bus?.[Symbol.asyncDispose]();
  await stores?.[Symbol.asyncDispose]();
});

test('BUS-051: streams are listed page by page, by scans of a hundred, with their size and groups', async () => {
  const env = newEnv();
  for (const family of ['app', 'audit', 'sys']) for (const n of [1, 2]) await bus.produce(shop, env, n, { stream_family: family });
  await bus.consume(mail, { env_id: env, stream_family: 'sys' });
  const rows: { stream_family: string; length: number; groups: number; stream: string }[] = [];
  let cursor: string | null = null;
  const monitor = await bus.store.client.monitor();
  const commands: string[][] = [];
  monitor.on('monitor', (_: string, command: string[]) => void commands.push(command.map(part => part.toUpperCase())));
  do {
    const page = (await bus.call('listStreams', shop, { query: { env_id: env, limit: 1, ...(cursor ? { cursor } : {}) } })).value as {
      items: typeof rows;
      next_cursor: string | null;
    };
    rows.push(...page.items);
    cursor = page.next_cursor;
  } while (cursor !== null);
  const scans = () => commands.filter(([name]) => /^[SHZ]?SCAN$/.test(name ?? ''));
  await eventually(() => scans().length).toBeGreaterThanOrEqual(3);
  expect(scans().map(command => command.slice(-2))).toEqual(scans().map(() => ['COUNT', '100']));
  expect(commands.filter(([name]) => name === 'KEYS' || name === 'SMEMBERS')).toEqual([]);
  monitor.disconnect();
  expect(rows.map(({ stream, length }) => [stream, length]).sort()).toEqual([
    [`bus:${env}:app`, 2],
    [`bus:${env}:audit`, 2],
    [`bus:${env}:sys`, 2],
  ]);
  expect(rows.find(({ stream_family }) => stream_family === 'sys')).toMatchObject({
    env_id: env,
    first_id: expect.any(String),
    last_id: expect.any(String),
  });
  expect(await refusal(bus.call('listStreams', shop, { query: { env_id: env, cursor: 'x' } }))).toMatchObject({
    code: 'invalid_cursor',
    status: 400,
  });
});

test('BUS-051: streams are sorted by name and by how much they hold, either way, page after page', async () => {
  const env = newEnv();
  const sizes = { zoo: 1, app: 2, mid: 2, big: 3, two: 1 };
  for (const [stream_family, count] of Object.entries(sizes))
    for (let n = 0; n < count; n++) await bus.produce(shop, env, n, { stream_family });
  for (const stream_family of ['mid', 'zoo']) await bus.consume(mail, { env_id: env, stream_family });
  type Listed = { items: { stream_family: string }[]; next_cursor: string | null };
  const page = async (query: object) =>
    (await bus.call('listStreams', shop, { query: { env_id: env, limit: 2, ...query } as never })).value as Listed;
  const listed = async (sort: string, order: string) => {
    const names: string[] = [];
    for (let cursor: string | null | undefined; cursor !== null; ) {
      const found: Listed = await page({ sort, order, ...(cursor ? { cursor } : {}) });
      names.push(...found.items.map(({ stream_family }) => stream_family));
      cursor = found.next_cursor;
    }
    return names;
  };
  const orders = {
    stream_family: ['app', 'big', 'mid', 'two', 'zoo'],
    // Streams that hold as much come by name.
    length: ['two', 'zoo', 'app', 'mid', 'big'],
    groups: ['app', 'big', 'two', 'mid', 'zoo'],
  };
  for (const [sort, names] of Object.entries(orders))
    expect([sort, await listed(sort, 'asc'), await listed(sort, 'desc')]).toEqual([sort, names, names.toReversed()]);
  const { next_cursor: cursor } = await page({ sort: 'length' });
  for (const other of [{ sort: 'length', order: 'desc' }, { sort: 'groups' }, {}])
    expect(await refusal(page({ ...other, cursor }))).toMatchObject({ code: 'invalid_cursor', status: 400 });
  for (const unknown of [{ sort: 'last_id' }, { sort: 'length', order: 'up' }])
    expect(await refusal(page(unknown))).toMatchObject({ code: 'validation_failed', status: 400 });
});

test('BUS-052: the lag of each group', async () => {
  const env = newEnv();
  for (const n of [1, 2, 3]) await bus.produce(shop, env, n);
  await bus.consume(mail, { env_id: env, count: 2 });
  const { value } = await bus.call('streamLag', shop, { params: { family: 'app' }, query: { env_id: env } });
  expect(value).toMatchObject({
    stream: `bus:${env}:app`,
    groups: [{ group: 'mail.g', pending: 2, lag: 1, last_delivered_id: expect.any(String), oldest_pending_ms: expect.any(Number) }],
  });
});

test('BUS-053 BUS-056 BUS-057: metrics and the data of the pages, which need a target', async () => {
  const env = newEnv();
  await bus.produce(shop, env, 1);
  const read = async (path: string) => {
    const { status, json: body } = await bus.host.fetch(path, { persona: shop });
    return { status, body };
  };
  expect((await read('/v1/metrics')).body).toMatchObject({
    produced: expect.any(Number),
    inbox_unrelayed: expect.any(Number),
    retry_depth: 0,
    sse_clients: expect.any(Number),
  });
  expect((await read(`/v1/admin/streams?target_env_id=${env}`)).body).toMatchObject({ items: [{ stream_family: 'app', length: 1 }] });
  expect((await read(`/v1/admin/overview?target_env_id=${env}`)).body).toMatchObject({ streams: 1, entries: 1, dead_letters: 0 });
  // The environment of a token is no target.
  const ada = person(env);
  for (const resource of ['overview', 'streams', 'consumers', 'metrics', 'dlq']) {
    const answers = ['', `?target_env_id=${env}`].map(query => bus.host.fetch(`/v1/admin/${resource}${query}`, { persona: ada }));
    const [without, named] = await Promise.all(answers);
    expect([resource, without?.status, without?.json['code'], named?.status]).toEqual([resource, 400, 'target_env_required', 200]);
  }
  for (const page of ['overview', 'streams', 'consumers', 'metrics', 'dlq', 'policy'])
    expect((await read(`/v1/admin/ui/${page}`)).body).toMatchObject({ page, sections: expect.arrayContaining([expect.any(Object)]) });
});

test('streams of an environment that has more than a thousand are listed by name alone', async () => {
  const env = newEnv();
  const { client } = bus.store;
  const families = Array.from({ length: 1_001 }, (_, n) => `many-${String(n).padStart(4, '0')}`);
  await client.sadd('bus:families', ...families);
  const appends = client.pipeline();
  for (const family of families) appends.xadd(`bus:{${env}}:${family}`, '*', 'n', '1');
  await appends.exec();
  const page = async (query: object) =>
    (await bus.call('listStreams', shop, { query: { env_id: env, limit: 1, ...query } as never })).value;
  expect(await page({ sort: 'stream_family', order: 'desc' })).toMatchObject({ items: [{ stream_family: 'many-1000' }] });
  for (const sort of ['length', 'groups'])
    expect(await refusal(page({ sort }))).toMatchObject({
      code: 'too_many_streams',
      status: 400,
      detail: expect.stringContaining('by stream_family'),
    });
  await client.srem('bus:families', ...families);
});
