import { eventually, loseKeyValue, openTestStores, type TestStores } from '@platform/testing';
import { afterAll, beforeAll, expect, test, vi } from 'vitest';
import { leaveBehind } from './fixtures/left-behind.ts';
import { newEnv, RunningBus, workload } from './fixtures/running-bus.ts';

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
  await bus[Symbol.asyncDispose]();
  await stores[Symbol.asyncDispose]();
});

const unmarked = async (env: string) => (await bus.pool.raw`select 1 from event_inbox where env_id = ${env} and message_id is null`).length;
const keys = (entries: readonly { idempotency_key: string }[]): string[] => entries.map(({ idempotency_key }) => idempotency_key);
async function killStore(): Promise<void> {
  await loseKeyValue(stores);
  await eventually(() => bus.reachesStore()).toBe(true);
}

test('BUS-020: nothing that was acknowledged is lost when the store is killed twice in the middle of it', async () => {
  const env = newEnv();
  const acknowledged: string[] = [];
  const consumed = new Set<string>();
  let killed = false;
  const producers = Array.from({ length: 8 }, async (_, producer) => {
    for (let n = 0; n < 400 || !killed; n++) {
      const key = `${producer}-${n}`;
      const answered = await bus.produce(shop, env, n, { idempotency_key: key }).then(
        () => true,
        () => false,
      );
      if (answered) acknowledged.push(key);
      else await eventually(() => bus.reachesStore()).toBe(true);
    }
  });
  const reading = (async () => {
    while (!killed) {
      for (const key of keys(await bus.drain(mail, { env_id: '*' }).catch(() => []))) consumed.add(key);
      await eventually(() => bus.reachesStore()).toBe(true);
    }
  })();
  for (let kill = 0; kill < 2; kill++) {
    const before = acknowledged.length;
    await eventually(() => acknowledged.length).toBeGreaterThan(before + 300);
    await killStore();
    await bus.clock.advance('2s');
  }
  killed = true;
  await Promise.all([...producers, reading]);
  await bus.clock.advance('10s');
  for (const key of keys(await bus.drain(mail, { env_id: '*', consumer: 'last' }))) consumed.add(key);
  // Entries that a lost answer left pending come after their minute; a fresh group sees everything that is there.
  for (const key of keys(await bus.drain(mail, { env_id: env, consumer_group: 'audit' }))) consumed.add(key);
  expect(acknowledged.length).toBeGreaterThan(1_000);
  expect(acknowledged.filter(key => !consumed.has(key))).toEqual([]);
});

test('BUS-014 BUS-021: events whose stream was lost are appended again under their keys, and a repeated request gets the id it has now', async () => {
  const env = newEnv();
  await bus.clock.advance('2s');
  const before = await Promise.all(Array.from({ length: 50 }, (_, n) => bus.produce(shop, env, n, { idempotency_key: `k-${n}` })));
  await eventually(() => unmarked(env)).toBe(0);
  await killStore();
  await bus.clock.advance('2s');
  const entries = await bus.drain(mail, { env_id: env, consumer_group: 'again' });
  expect(new Set(keys(entries))).toEqual(new Set(before.map((_, n) => `k-${n}`)));
  const repeated = await bus.produce(shop, env, 7, { idempotency_key: 'k-7' });
  expect(repeated.replayed).toBe(true);
  expect(entries.filter(({ idempotency_key }) => idempotency_key === 'k-7').map(({ message_id }) => message_id)).toContain(
    repeated.message_id,
  );
});

test('BUS-009 BUS-010 BUS-028: a row that was given up is appended as soon as the database says so, with the id of the inbox row', async () => {
  const env = newEnv();
  await leaveBehind(bus.pool, env, 3);
  await bus.pool.raw`select pg_notify('bus_inbox', '')`;
  await eventually(() => unmarked(env)).toBe(0);
  const entries = await bus.drain(mail, { env_id: env });
  expect(entries.map(({ payload }) => payload.n)).toEqual([1, 2, 3]);
  const rows = await bus.pool.raw<{ id: string }[]>`select id from event_inbox where env_id = ${env} order by id`;
  expect(entries.map(entry => entry['inbox_id'])).toEqual(rows.map(({ id }) => id));
});

test('what a store forgot is on its stream again before anything new is, in the order of its acceptance', async () => {
  const env = newEnv();
  await bus.clock.advance('2s');
  for (let n = 1; n <= 30; n++) await bus.produce(shop, env, n, { idempotency_key: `k-${n}` });
  await eventually(() => unmarked(env)).toBe(0);
  await killStore();
  // As a producer does: again until it is taken, and nobody moves the clock of the poll.
  const next = () =>
    bus.produce(shop, env, 31, { idempotency_key: 'k-31' }).then(
      () => 'taken',
      (error: { code: string }) => error.code,
    );
  await eventually(next).toBe('taken');
  const seen = (await bus.drain(mail, { env_id: env })).map(({ payload }) => payload.n);
  expect([...new Set(seen)]).toEqual(Array.from({ length: 31 }, (_, n) => n + 1));
});

test('a batch that is sent again overtakes nothing: rows whose appender says nothing are appended before the ones behind them', async () => {
  const env = newEnv();
  await leaveBehind(bus.pool, env, 2, { lease: '10 s' });
  const events = [1, 2, 3].map(n => ({
    event_type: 'platform:shop:order:created',
    env_id: env,
    stream_family: 'app',
    payload: { n },
    idempotency_key: `left-${n}`,
  }));
  const { results } = (await bus.call('produceBatch', shop, { body: { events } })).value as { results: { message_id?: string }[] };
  expect(results.every(({ message_id }) => message_id !== undefined)).toBe(true);
  expect((await bus.drain(mail, { env_id: env })).map(({ payload }) => payload.n)).toEqual([1, 2, 3]);
});

test('BUS-011 BUS-012: without being told, the poll finds it after two seconds; thousands leave in passes of a thousand rows', async () => {
  const env = newEnv();
  await leaveBehind(bus.pool, env, 2_500);
  // The database notes how many rows each statement takes over.
  await bus.pool.raw.unsafe(`
    create table taken_over (rows int);
    create function note_taken_over() returns trigger language plpgsql as $$ begin
      insert into taken_over select sum(cardinality(positions)) from taken where done_at is null having count(*) > 0;
      return null;
    end $$;
    create trigger taken_over after update on event_groups referencing new table as taken
      for each statement execute function note_taken_over()`);
  await bus.clock.advance('1999ms');
  expect(await unmarked(env)).toBe(2_500);
  await bus.clock.advance('1ms');
  expect(await unmarked(env)).toBe(0);
  expect(await bus.store.client.xlen(`bus:{${env}}:app`)).toBe(2_500);
  const passes = await bus.pool.raw<{ rows: number }[]>`select rows from taken_over`;
  expect(passes.map(({ rows }) => rows)).toEqual([1_000, 1_000, 500]);
  await bus.pool.raw.unsafe('drop trigger taken_over on event_groups; drop function note_taken_over; drop table taken_over');
});

test('BUS-013: a bus that starts drains the inbox before it is ready', async () => {
  const env = newEnv();
  await leaveBehind(bus.pool, env, 1_200);
  await using other = await RunningBus.start(stores);
  expect(await other.store.client.xlen(`bus:{${env}}:app`)).toBe(1_200);
});

test('several processes relay the same rows once', async () => {
  const env = newEnv();
  await using other = await RunningBus.start(stores);
  await leaveBehind(bus.pool, env, 2_000);
  await Promise.all([bus.pool.raw`select pg_notify('bus_inbox', '')`, bus.clock.advance('2s'), other.clock.advance('2s')]);
  await eventually(() => unmarked(env)).toBe(0);
  expect(await bus.store.client.xlen(`bus:{${env}}:app`)).toBe(2_000);
});

test('BUS-082: an event that cannot be appended is refused with the reason, kept, and arrives by itself; others of its batch are not held up', async () => {
  const [broken, whole] = [newEnv(), newEnv()];
  await bus.store.client.set(`bus:{${broken}}:app`, 'no stream');
  const [refused, taken] = await Promise.all([
    bus.produce(shop, broken, 1, { idempotency_key: 'kept' }).catch((error: unknown) => error),
    bus.produce(shop, whole, 2),
  ]);
  expect(refused).toMatchObject({ code: 'append_failed', status: 500, detail: expect.stringMatching(/^XADD failed: /) });
  expect(taken).toMatchObject({ replayed: false });
  await bus.store.client.del(`bus:{${broken}}:app`);
  await eventually(async () => {
    await bus.clock.advance('2s');
    return unmarked(broken);
  }).toBe(0);
  expect(keys(await bus.drain(mail, { env_id: broken }))).toEqual(['kept']);
});
