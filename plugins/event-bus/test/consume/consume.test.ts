import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest';
import { eventually } from '../../../../kernel/storage/fixtures/eventually.ts';
import { bearer, BusProcess, newEnv, person, Stores, workload } from '../harness.ts';

vi.setConfig({ testTimeout: 30_000, hookTimeout: 60_000 });

const shop = workload('shop');
const mail = workload('mail');
const acme = workload('m2m-acme', 'acme');
let stores: Stores;
let bus: BusProcess;
let families = 0;
const newFamily = (): string => `family-${++families}`;
beforeAll(async () => {
  stores = await Stores.start();
  bus = await BusProcess.start(stores);
});
afterAll(async () => {
  await bus[Symbol.asyncDispose]();
  await stores[Symbol.asyncDispose]();
});

const numbers = (entries: readonly { payload: { n?: number } }[]): (number | undefined)[] => entries.map(({ payload }) => payload.n);
const refusal = (work: Promise<unknown>): Promise<{ code: string; status: number }> =>
  work.then(
    () => ({ code: 'none', status: 200 }),
    error => error,
  );
/** Makes entries look as if they had been taken long ago. */
const abandon = (env: string, family: string, group: string, ids: string[]) =>
  bus.store.client.call('XCLAIM', `bus:{${env}}:${family}`, group, 'gone', 0, ...ids, 'IDLE', 61_000, 'JUSTID');

describe('one environment', () => {
  test('BUS-044 BUS-033: a pull makes its group at the earliest entry, and each entry comes once', async () => {
    const env = newEnv();
    for (const n of [1, 2, 3]) await bus.produce(shop, env, n);
    expect(numbers(await bus.consume(mail, { env_id: env, count: 2 }))).toEqual([1, 2]);
    expect(numbers(await bus.consume(mail, { env_id: env }))).toEqual([3]);
    expect(await bus.consume(mail, { env_id: env })).toEqual([]);
  });

  test('a pull names the types it wants: the rest is acknowledged for the group, in one environment and over all of them', async () => {
    const [env, family] = [newEnv(), newFamily()];
    const wanted = { stream_family: family, types: ['platform:shop:order:paid'] };
    for (const [n, event_type] of [
      [1, 'platform:shop:order:created'],
      [2, 'platform:shop:order:paid'],
      [3, 'platform:shop:order:paid'],
    ] as const)
      await bus.produce(shop, env, n, { stream_family: family, event_type });
    expect(numbers(await bus.consume(mail, { env_id: env, ...wanted }))).toEqual([2, 3]);
    expect(numbers(await bus.consume(mail, { env_id: '*', ...wanted, consumer_group: 'all' }))).toEqual([2, 3]);
    // Nothing is left of the other type: neither pending nor unread.
    expect(await bus.consume(mail, { env_id: env, stream_family: family })).toEqual([]);
    expect(await refusal(bus.consume(mail, { env_id: env, stream_family: family, types: [] }))).toMatchObject({
      code: 'validation_failed',
    });
  });

  test('a group that starts at the latest entry hears what comes after, on a stream that is not there yet as well', async () => {
    const [there, not] = [newEnv(), newEnv()];
    await bus.produce(shop, there, 1);
    for (const env of [there, not]) {
      expect(await bus.consume(mail, { env_id: env, start: 'latest' })).toEqual([]);
      await bus.produce(shop, env, 2);
      expect(numbers(await bus.consume(mail, { env_id: env, start: 'latest' }))).toEqual([2]);
    }
  });

  test('BUS-032: two subjects with the same group name read for themselves', async () => {
    const env = newEnv();
    await bus.produce(shop, env, 1);
    expect(numbers(await bus.consume(mail, { env_id: env }))).toEqual([1]);
    expect(numbers(await bus.consume(shop, { env_id: env }))).toEqual([1]);
    expect(await bus.store.client.xinfo('GROUPS', `bus:{${env}}:app`)).toMatchObject([
      expect.arrayContaining(['mail.g']),
      expect.arrayContaining(['shop.g']),
    ]);
  });

  test('a person reads the own environment and no other; a workload must name one', async () => {
    const [own, foreign] = [newEnv(), newEnv()];
    await bus.produce(shop, own, 1);
    expect(numbers(await bus.consume(person(own), {}))).toEqual([1]);
    expect(await refusal(bus.consume(person(own), { env_id: foreign }))).toMatchObject({ code: 'env_mismatch', status: 403 });
    expect(await refusal(bus.consume(person(own), { env_id: '*' }))).toMatchObject({ code: 'm2m_only', status: 403 });
    expect(await refusal(bus.consume(mail, {}))).toMatchObject({ code: 'env_required', status: 400 });
    expect(await refusal(bus.consume(mail, { env_id: own, stream_family: 'dlq' }))).toMatchObject({
      code: 'invalid_stream_family',
      status: 400,
    });
  });

  test('a waiting pull is answered by the next event, whichever process appends it', async () => {
    const env = newEnv();
    await using other = await BusProcess.start(stores);
    for (const [n, process] of [bus, other].entries()) {
      const waiting = bus.consume(mail, { env_id: env, block_ms: 10_000 });
      const began = performance.now();
      await process.produce(shop, env, n);
      expect(numbers(await waiting)).toEqual([n]);
      expect(performance.now() - began).toBeLessThan(5_000);
    }
    expect(await bus.consume(mail, { env_id: env, block_ms: 20 })).toEqual([]);
  });

  test('BUS-003: what is taken and not acknowledged comes again after a minute, counted, and before anything new', async () => {
    const env = newEnv();
    await bus.produce(shop, env, 1);
    const [first] = await bus.consume(mail, { env_id: env, consumer: 'one' });
    expect(first?.delivery_count).toBe(1);
    expect(await bus.consume(mail, { env_id: env, consumer: 'two' })).toEqual([]);
    await abandon(env, 'app', 'mail.g', [first?.message_id as string]);
    await bus.produce(shop, env, 2);
    const again = await bus.consume(mail, { env_id: env, consumer: 'two' });
    expect(again.map(({ payload, delivery_count }) => [payload.n, delivery_count])).toEqual([
      [1, 2],
      [2, 1],
    ]);
  });

  test('of two that claim at once, one gets the entry', async () => {
    const env = newEnv();
    await bus.produce(shop, env, 1);
    const [entry] = await bus.consume(mail, { env_id: env });
    await abandon(env, 'app', 'mail.g', [entry?.message_id as string]);
    const claims = await Promise.all(Array.from({ length: 12 }, (_, n) => bus.consume(mail, { env_id: env, consumer: `c-${n}` })));
    expect(claims.flat()).toHaveLength(1);
  });

  test('a pull whose caller has gone leaves its entries to the next one', async () => {
    const env = newEnv();
    const gone = new AbortController();
    const waiting = bus.consume(mail, { env_id: env, block_ms: 10_000 }, gone.signal);
    gone.abort();
    expect(await waiting).toEqual([]);
    await bus.produce(shop, env, 1);
    expect(await bus.consume(mail, { env_id: env }, gone.signal)).toEqual([]);
    expect(numbers(await bus.consume(mail, { env_id: env }))).toEqual([1]);
  });

  test('BUS-045: acknowledged entries are gone; unknown ones and nonsense count nothing', async () => {
    const env = newEnv();
    await bus.produce(shop, env, 1);
    const [entry] = await bus.consume(mail, { env_id: env });
    const ack = async (body: object) =>
      (await bus.call('ack', mail, { body: { env_id: env, stream_family: 'app', consumer_group: 'g', ...body } })).value;
    expect(await ack({ message_ids: [entry?.message_id, '1-1', 'nonsense'] })).toEqual({ acked: 1, lost: ['1-1', 'nonsense'] });
    expect(await ack({ message_id: entry?.message_id })).toEqual({ acked: 0, lost: [entry?.message_id] });
    expect(await refusal(ack({}))).toMatchObject({ code: 'message_ids_required', status: 400 });
    await abandon(env, 'app', 'mail.g', [entry?.message_id as string]);
    expect(await bus.consume(mail, { env_id: env })).toEqual([]);
    await eventually(async () => (await bus.pool.raw`select 1 from audit_journal where env_id = ${env} and action = 'ack'`).length).toBe(3);
  });
});

describe('all environments at once', () => {
  test('a family is read across its environments, those that appear later from their beginning', async () => {
    const family = newFamily();
    const [one, two, late] = [newEnv(), newEnv(), newEnv()];
    const to = (env: string, n: number) => bus.produce(shop, env, n, { stream_family: family });
    await to(one, 1);
    await to(two, 2);
    const seen = await bus.drain(mail, { env_id: '*', stream_family: family });
    expect(seen.map(({ env_id, payload }) => [env_id, payload.n]).sort()).toEqual(
      [
        [one, 1],
        [two, 2],
      ].sort(),
    );
    const waiting = bus.consume(mail, { env_id: '*', stream_family: family, block_ms: 10_000 });
    await to(late, 3);
    expect((await waiting).map(({ env_id, payload }) => [env_id, payload.n])).toEqual([[late, 3]]);
  });

  test('a group that starts at the latest entry skips what was there on every known stream, and nothing of a new one', async () => {
    const family = newFamily();
    const [old, quiet, late] = [newEnv(), newEnv(), newEnv()];
    const to = (env: string, n: number) => bus.produce(shop, env, n, { stream_family: family });
    await to(old, 1);
    await to(quiet, 2);
    const read = (block_ms = 0) => bus.consume(mail, { env_id: '*', stream_family: family, start: 'latest', block_ms });
    expect(await read()).toEqual([]);
    await to(late, 3);
    expect(numbers(await read(10_000))).toEqual([3]);
    // Not read by this group before, and its old entry is still not heard.
    await to(quiet, 4);
    expect(numbers(await read(10_000))).toEqual([4]);
  });

  test('appends of another process are heard, in both directions and by several readers of one group once', async () => {
    const family = newFamily();
    const env = newEnv();
    await using other = await BusProcess.start(stores);
    const readers = [bus, other].map(process =>
      process.consume(mail, { env_id: '*', stream_family: family, block_ms: 2_000, consumer: process === bus ? 'a' : 'b' }),
    );
    await other.produce(shop, env, 1, { stream_family: family });
    const first = await Promise.race(readers.map((reader, index) => reader.then(entries => ({ index, entries }))));
    expect(numbers(first.entries)).toEqual([1]);
    await bus.produce(shop, env, 2, { stream_family: family });
    expect(numbers(await (readers[1 - first.index] as (typeof readers)[0]))).toEqual([2]);
  });

  test('a loud environment does not keep the others from their turn, and the count is kept', async () => {
    const family = newFamily();
    const [loud, quiet] = [newEnv(), newEnv()];
    await Promise.all(Array.from({ length: 200 }, (_, n) => bus.produce(shop, loud, n, { stream_family: family })));
    await bus.produce(shop, quiet, 999, { stream_family: family });
    const first = await bus.consume(mail, { env_id: '*', stream_family: family, count: 10 });
    expect(first).toHaveLength(10);
    expect(numbers(first)).toContain(999);
    const rest = await bus.drain(mail, { env_id: '*', stream_family: family });
    expect(numbers([...first, ...rest].filter(({ env_id }) => env_id === loud))).toEqual(Array.from({ length: 200 }, (_, n) => n));
  });

  test('BUS-074 over all environments a vertical hears the platform and itself; in one that it names, nothing is kept from it', async () => {
    const family = newFamily();
    const env = newEnv();
    await bus.produce(shop, env, 1, { stream_family: family });
    await bus.produce(acme, env, 2, { stream_family: family });
    await bus.produce(workload('m2m-globex', 'globex'), env, 3, { stream_family: family });
    expect(numbers(await bus.drain(acme, { env_id: '*', stream_family: family }))).toEqual([1, 2]);
    expect(numbers(await bus.drain(mail, { env_id: '*', stream_family: family }))).toEqual([1, 2, 3]);
    expect((await bus.store.client.xpending(`bus:{${env}}:${family}`, 'm2m-acme.g'))[0]).toBe(0);
    expect(numbers(await bus.consume(acme, { env_id: env, stream_family: family, consumer_group: 'direct' }))).toEqual([1, 2, 3]);
  });

  test('abandoned entries of any environment are found again', async () => {
    const family = newFamily();
    const env = newEnv();
    const { message_id } = await bus.produce(shop, env, 1, { stream_family: family });
    expect(numbers(await bus.consume(mail, { env_id: '*', stream_family: family }))).toEqual([1]);
    await abandon(env, family, 'mail.g', [message_id]);
    await bus.clock.advance('10s');
    expect(
      (await bus.consume(mail, { env_id: '*', stream_family: family, consumer: 'next' })).map(({ payload, delivery_count }) => [
        payload.n,
        delivery_count,
      ]),
    ).toEqual([[1, 2]]);
  });

  test('a group closes on all streams; one that its process left is destroyed after an hour', async () => {
    const family = newFamily();
    const envs = [newEnv(), newEnv()];
    for (const env of envs) await bus.produce(shop, env, 1, { stream_family: family });
    const groups = async () =>
      (await Promise.all(envs.map(env => bus.store.client.xinfo('GROUPS', `bus:{${env}}:${family}`))))
        .flat()
        .map(group => (group as string[])[1]);
    for (const group of ['sessions.p-1', 'sessions.p-2', 'shared'])
      await bus.consume(mail, { env_id: '*', stream_family: family, consumer_group: group, consumer: group.split('.')[1] ?? 'p-1' });
    expect((await groups()).sort()).toEqual([
      'mail.sessions.p-1',
      'mail.sessions.p-1',
      'mail.sessions.p-2',
      'mail.sessions.p-2',
      'mail.shared',
      'mail.shared',
    ]);
    expect((await bus.call('closeGroup', mail, { body: { stream_family: family, consumer_group: 'sessions.p-1' } })).value).toEqual({
      closed: 2,
    });
    expect(await groups()).not.toContain('mail.sessions.p-1');
    await bus.clock.advance('50m');
    expect(await groups()).toContain('mail.sessions.p-2');
    await bus.clock.advance('20m');
    expect(await groups()).toEqual(['mail.shared', 'mail.shared']);
  });
});

describe('server-sent events', () => {
  interface Frame {
    readonly id?: string;
    readonly event?: string;
    readonly data?: { payload: { n: number }; delivery_count: number; message_id: string };
  }
  async function open(origin: string, query: string, caller = person('')) {
    const closing = new AbortController();
    const response = await fetch(`${origin}/v1/consume/sse?${query}`, {
      headers: { accept: 'text/event-stream', ...(query.includes('token=') ? {} : { authorization: bearer(caller) }) },
      signal: closing.signal,
    });
    const reader = response.body?.pipeThrough(new TextDecoderStream()).getReader();
    let text = '';
    const next = async (): Promise<Frame> => {
      while (!text.includes('\n\n')) {
        const { value, done } = (await reader?.read()) ?? { done: true, value: '' };
        if (done) throw new Error('the stream ended');
        text += value;
      }
      const [frame = '', ...rest] = text.split('\n\n');
      text = rest.join('\n\n');
      const members = Object.fromEntries(
        frame.split('\n').map(line => [line.slice(0, line.indexOf(': ')), line.slice(line.indexOf(': ') + 2)]),
      );
      return { ...members, ...(members['data'] ? { data: JSON.parse(members['data']) } : {}) };
    };
    return { response, next, [Symbol.dispose]: () => closing.abort() };
  }
  const clients = async () => ((await bus.call('metrics', shop)).value as { sse_clients: number }).sse_clients;

  test('BUS-047 BUS-049 BUS-064: events come as frames from the moment the group is made, and are acknowledged by request', async () => {
    const origin = await bus.listen();
    const env = newEnv();
    await bus.produce(shop, env, 1);
    using events = await open(origin, 'stream_family=app&consumer_group=tab', person(env));
    expect(events.response.headers.get('content-type')).toBe('text/event-stream');
    await eventually(async () => ((await bus.store.client.xinfo('GROUPS', `bus:{${env}}:app`)) as unknown[]).length).toBe(1);
    const { message_id } = await bus.produce(shop, env, 2);
    const frame = await events.next();
    expect(frame).toMatchObject({
      id: message_id,
      event: 'platform:shop:order:created',
      data: { message_id, payload: { n: 2 }, env_id: env, stream_family: 'app' },
    });
    expect((await bus.call('ack', person(env), { body: { stream_family: 'app', consumer_group: 'tab', message_id } })).value).toEqual({
      acked: 1,
      lost: [],
    });
  });

  test('BUS-048 BUS-060: the token may come in the query; what an earlier stream left comes again, counted', async () => {
    const origin = await bus.listen();
    const env = newEnv();
    const query = `env_id=${env}&stream_family=app&consumer_group=tab`;
    {
      using first = await open(origin, `${query}&token=${bearer(mail).slice(7)}`);
      await eventually(async () => ((await bus.store.client.xinfo('GROUPS', `bus:{${env}}:app`).catch(() => [])) as unknown[]).length).toBe(
        1,
      );
      await bus.produce(shop, env, 1);
      expect((await first.next()).data).toMatchObject({ payload: { n: 1 }, delivery_count: 1 });
    }
    await eventually(clients).toBe(0);
    const [[id]] = (await bus.store.client.call('XPENDING', `bus:{${env}}:app`, 'mail.tab', '-', '+', 10)) as [[string]];
    await abandon(env, 'app', 'mail.tab', [id]);
    using second = await open(origin, query, mail);
    expect((await second.next()).data).toMatchObject({ payload: { n: 1 }, delivery_count: 2 });
    expect(await clients()).toBe(1);
  });

  test('a stream that may not be opened is refused before it begins', async () => {
    const origin = await bus.listen();
    const { status } = await fetch(`${origin}/v1/consume/sse?stream_family=dlq&consumer_group=tab`, {
      headers: { authorization: bearer(person(newEnv())) },
    });
    expect(status).toBe(400);
    const other = await fetch(`${origin}/v1/consume/sse?stream_family=app&consumer_group=tab&env_id=${newEnv()}`, {
      headers: { authorization: bearer(person(newEnv())) },
    });
    expect([other.status, ((await other.json()) as { code: string }).code]).toEqual([403, 'env_mismatch']);
  });
});

describe('what operators see', () => {
  test('BUS-051: streams are listed page by page with their size and groups', async () => {
    const env = newEnv();
    for (const family of ['app', 'audit', 'sys']) for (const n of [1, 2]) await bus.produce(shop, env, n, { stream_family: family });
    await bus.consume(mail, { env_id: env, stream_family: 'sys' });
    const rows: { stream_family: string; length: number; groups: number; stream: string }[] = [];
    let cursor: string | null = null;
    do {
      const page = (await bus.call('listStreams', shop, { query: { env_id: env, limit: 1, ...(cursor ? { cursor } : {}) } })).value as {
        items: typeof rows;
        next_cursor: string | null;
      };
      rows.push(...page.items);
      cursor = page.next_cursor;
    } while (cursor !== null);
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
      code: 'bad_cursor',
      status: 400,
    });
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
    const origin = await bus.listen();
    const env = newEnv();
    await bus.produce(shop, env, 1);
    const read = async (path: string) => {
      const response = await fetch(`${origin}${path}`, { headers: { authorization: bearer(shop) } });
      return { status: response.status, body: (await response.json()) as Record<string, unknown> };
    };
    expect((await read('/v1/metrics')).body).toMatchObject({
      produced: expect.any(Number),
      inbox_unrelayed: expect.any(Number),
      retry_depth: 0,
      sse_clients: expect.any(Number),
    });
    expect((await read(`/v1/admin/streams?target_env_id=${env}`)).body).toMatchObject({ items: [{ stream_family: 'app', length: 1 }] });
    expect((await read(`/v1/admin/overview?target_env_id=${env}`)).body).toMatchObject({ streams: 1, entries: 1, dead_letters: 0 });
    expect((await read('/v1/admin/streams')).status).toBe(400);
    for (const page of ['overview', 'streams', 'consumers', 'metrics', 'dlq', 'policy'])
      expect((await read(`/v1/admin/ui/${page}`)).body).toMatchObject({ page, sections: expect.arrayContaining([expect.any(Object)]) });
  });

  test('streams are cut to their length, but not below what an active group has pending', async () => {
    const [free, held] = [newEnv(), newEnv()];
    await using small = await BusProcess.start(stores, { config: { streamEntries: 100 } });
    for (const env of [free, held]) await Promise.all(Array.from({ length: 600 }, (_, n) => small.produce(shop, env, n)));
    const [first] = await small.consume(mail, { env_id: held, count: 1 });
    await small.clock.advance('60s');
    const lengths = await Promise.all([free, held].map(env => small.store.client.xlen(`bus:{${env}}:app`)));
    expect(lengths[0]).toBeLessThan(300);
    expect(lengths[1]).toBe(600);
    await small.call('ack', mail, { body: { env_id: held, stream_family: 'app', consumer_group: 'g', message_id: first?.message_id } });
    await small.clock.advance('60s');
    expect(await small.store.client.xlen(`bus:{${held}}:app`)).toBeLessThan(300);
  });
});
