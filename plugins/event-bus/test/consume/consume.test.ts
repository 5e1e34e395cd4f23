import { eventually, openTestStores, type TestStores } from '@platform/testing';
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest';
import { newEnv, person, refusal, RunningBus, workload } from '../fixtures/running-bus.ts';

vi.setConfig({ testTimeout: 30_000, hookTimeout: 60_000 });

const shop = workload('shop');
const mail = workload('mail');
const acme = workload('m2m-acme', 'acme');
let stores: TestStores;
let bus: RunningBus;
let families = 0;
const newFamily = (): string => `family-${++families}`;
beforeAll(async () => {
  stores = await openTestStores();
  bus = await RunningBus.start(stores);
});
afterAll(async () => {
  await bus[Symbol.asyncDispose]();
  await stores[Symbol.asyncDispose]();
});

const numbers = (entries: readonly { payload: { n?: number } }[]): (number | undefined)[] => entries.map(({ payload }) => payload.n);
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
    await using other = await RunningBus.start(stores);
    for (const [n, process] of [bus, other].entries()) {
      // One that began before and hears nothing waits longer.
      const leaving = new AbortController();
      const quiet = bus.consume(mail, { env_id: newEnv(), block_ms: 10_000 }, leaving.signal);
      const waiting = bus.consume(mail, { env_id: env, block_ms: 10_000 });
      await process.produce(shop, env, n);
      expect(numbers(await Promise.race([quiet, waiting]))).toEqual([n]);
      leaving.abort();
      expect(await quiet).toEqual([]);
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

  test('BUS-045 BUS-080: acknowledged entries are gone; unknown ones and nonsense count nothing', async () => {
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
    const told = bus.host.logged.filter(line => line['target'] === 'bus.audit').map(line => JSON.stringify(line));
    expect(told.some(line => line.includes('"ack"') && line.includes(env))).toBe(true);
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
    await using other = await RunningBus.start(stores);
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
    await bus.clock.leap('50m');
    expect(await groups()).toContain('mail.sessions.p-2');
    await bus.clock.leap('20m');
    expect(await groups()).toEqual(['mail.shared', 'mail.shared']);
  });
});
