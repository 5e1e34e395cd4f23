import { eventually, newId, openTestStores, type TestStores } from '@platform/testing';
import { afterAll, beforeAll, expect, test, vi } from 'vitest';
import { Inbox } from '../src/inbox/inbox.ts';
import { rowOf } from './fixtures/left-behind.ts';
import { newEnv, person, refusal, RunningBus, workload } from './fixtures/running-bus.ts';

vi.setConfig({ testTimeout: 30_000, hookTimeout: 60_000 });

const shop = workload('shop');
const mail = workload('mail');
const acme = workload('m2m-acme', 'acme');
let stores: TestStores;
let bus: RunningBus;
beforeAll(async () => {
  stores = await openTestStores();
  bus = await RunningBus.start(stores, { produceRate: 1, produceBurst: 5 });
});
afterAll(async () => {
  await bus[Symbol.asyncDispose]();
  await stores[Symbol.asyncDispose]();
});

interface Waiting {
  readonly schedule_id: string;
  readonly deliver_at: string;
}
const inMs = (ms: number) => new Date(bus.clock.now().getTime() + ms).toISOString();
const schedule = async (env: string | undefined, afterMs: number, more: Record<string, unknown> = {}, as = shop) => {
  const body = {
    event_type: `${as.vertical}:shop:order:created`,
    env_id: env,
    stream_family: 'app',
    payload: { n: 1 },
    deliver_at: inMs(afterMs),
    ...more,
  };
  const { status, value, headers } = await bus.call('schedule', as, { body: JSON.parse(JSON.stringify(body)) });
  return { status, headers, ...(value as Waiting) };
};
const listed = async (env: string, query: object = {}) =>
  (await bus.call('listScheduled', mail, { query: { env_id: env, ...query } })).value as {
    items: (Waiting & { event_type: string })[];
    next_cursor: string | null;
  };
const cancel = (id: string, as = shop) => bus.call('cancelScheduled', as, { params: { schedule_id: id } });
const rows = (env: string) =>
  bus.pool.raw<
    { schedule_id: string; delivered_at: string | null }[]
  >`select schedule_id, delivered_at from scheduled_events where env_id = ${env}`;

test('BUS-054 BUS-036 BUS-018 an event that is scheduled is kept in the database at once and is on its stream with the pass after its time, not before', async () => {
  const env = newEnv();
  const { status, schedule_id, deliver_at, headers } = await schedule(env, 25_000, { idempotency_key: 'later', correlation_id: 'corr-s' });
  expect(status).toBe(201);
  expect(headers['location']).toBe(`/v1/scheduled/${schedule_id}`);
  expect(deliver_at).toBe(inMs(25_000));
  expect(await rows(env)).toEqual([{ schedule_id, delivered_at: null }]);
  await bus.clock.advance('20s');
  expect(await bus.consume(mail, { env_id: env })).toEqual([]);
  await bus.clock.advance('10s');
  expect(await bus.consume(mail, { env_id: env })).toMatchObject([
    {
      event_type: 'platform:shop:order:created',
      payload: { n: 1 },
      idempotency_key: 'later',
      correlation_id: 'corr-s',
      produced_by: 'shop',
      inbox_id: schedule_id,
      delivery_count: 1,
    },
  ]);
  await bus.clock.advance('30s');
  expect(await bus.consume(mail, { env_id: env })).toEqual([]);
});

test('a time in the past is due with the next pass; more than 366 days ahead is refused', async () => {
  const env = newEnv();
  await schedule(env, -86_400_000);
  await bus.clock.advance('10s');
  expect(await bus.consume(mail, { env_id: env })).toHaveLength(1);
  expect(await refusal(schedule(env, 367 * 86_400_000))).toMatchObject({ code: 'deliver_at_too_far', status: 400 });
  expect((await schedule(env, 366 * 86_400_000 - 1_000)).status).toBe(201);
});

test.each([
  ['no name of an event', { event_type: 'platform:shop:created' }, shop, 'invalid_event_type', 400],
  ['a reserved family', { stream_family: 'delayed' }, shop, 'invalid_stream_family', 400],
  ['no object', { payload: 'text' }, shop, 'payload_not_object', 400],
  ['too large', { payload: { text: 'x'.repeat(262_144) } }, shop, 'payload_too_large', 413],
  ['no environment', { env_id: undefined }, shop, 'env_required', 400],
  ['of another vertical', { event_type: 'globex:shop:order:created' }, acme, 'event_ownership', 403],
  ['from a person', { event_type: 'platform:shop:order:created' }, person('018f0000-0000-7000-8000-00000000aaaa'), 'env_mismatch', 403],
  ['without a time', { deliver_at: undefined }, shop, 'validation_failed', 400],
])('what may not be produced may not be scheduled: %s', async (_, change, as, code, status) => {
  const env = newEnv();
  expect(await refusal(schedule(env, 1_000, change, as))).toMatchObject({ code, status });
  expect(await rows(env)).toEqual([]);
});

test('the bucket of an environment counts scheduled events like others', async () => {
  const env = newEnv();
  const codes = await Promise.all(Array.from({ length: 10 }, () => refusal(schedule(env, 60_000, {}, acme)).then(({ code }) => code)));
  expect(codes.filter(code => code === 'rate_limited').length).toBeGreaterThanOrEqual(4);
});

test('of twelve copies under one key one is kept, and all get its id; what was published under a key is not published later', async () => {
  const env = newEnv();
  const copies = await Promise.all(Array.from({ length: 12 }, () => schedule(env, 60_000, { idempotency_key: 'once' })));
  expect(new Set(copies.map(({ schedule_id }) => schedule_id)).size).toBe(1);
  expect(copies.filter(({ headers }) => headers['Idempotent-Replay'] !== 'true')).toHaveLength(1);
  expect(await rows(env)).toHaveLength(1);
  await bus.produce(shop, env, 1, { idempotency_key: 'out' });
  expect(await refusal(schedule(env, 60_000, { idempotency_key: 'out' }))).toMatchObject({ code: 'key_published', status: 409 });
  await bus.produce(shop, env, 2);
  const minted = (await bus.consume(mail, { env_id: env }))[1]?.idempotency_key;
  expect(await refusal(schedule(env, 60_000, { idempotency_key: minted }))).toMatchObject({ code: 'key_published', status: 409 });
  // After its delivery the first answer still stands.
  await bus.clock.advance('70s');
  expect((await schedule(env, 60_000, { idempotency_key: 'once' })).schedule_id).toBe(copies[0]?.schedule_id);
});

test('BUS-055 the list shows what is due and not delivered yet, or all that waits, page by page, of one environment', async () => {
  const env = newEnv();
  const due = await schedule(env, -1_000);
  const later = [await schedule(env, 60_000), await schedule(env, 120_000)];
  expect((await listed(env)).items.map(({ schedule_id }) => schedule_id)).toEqual([due.schedule_id]);
  const one = await listed(env, { include: 'all', limit: 2 });
  const two = await listed(env, { include: 'all', limit: 2, cursor: one.next_cursor });
  expect([...one.items, ...two.items].map(({ schedule_id }) => schedule_id)).toEqual(
    [...later.toReversed(), due].map(({ schedule_id }) => schedule_id),
  );
  expect(two.next_cursor).toBe(null);
  expect(one.items[0]).toMatchObject({
    event_type: 'platform:shop:order:created',
    stream_family: 'app',
    deliver_at: later[1]?.deliver_at,
    created_at: expect.any(String),
  });
  expect((await listed(newEnv(), { include: 'all' })).items).toEqual([]);
  expect(await refusal(listed(env, { cursor: 'nonsense' }))).toMatchObject({ code: 'invalid_cursor' });
  expect(await refusal(bus.call('listScheduled', person(newEnv()), { query: { env_id: env } }))).toMatchObject({ code: 'env_mismatch' });
  await bus.clock.advance('10s');
  expect((await listed(env)).items).toEqual([]);
});

test('a delayed event can be taken back by its vertical until it is delivered', async () => {
  const env = newEnv();
  const { schedule_id } = await schedule(env, 60_000);
  expect(await refusal(cancel(schedule_id, acme))).toMatchObject({ code: 'event_ownership', status: 403 });
  expect(await refusal(cancel(schedule_id, person(env)))).toMatchObject({ code: 'event_ownership' });
  expect((await cancel(schedule_id)).status).toBe(204);
  expect(await refusal(cancel(schedule_id))).toMatchObject({ code: 'unknown_schedule', status: 404 });
  expect(await refusal(cancel('nonsense'))).toMatchObject({ code: 'validation_failed' });
  const gone = await schedule(env, 0);
  await bus.clock.advance('70s');
  expect(await refusal(cancel(gone.schedule_id))).toMatchObject({ code: 'schedule_delivered', status: 409 });
  expect(await bus.consume(mail, { env_id: env })).toHaveLength(1);
});

test('several processes deliver each delayed event once, in passes, and none is lost when the store is away at its time', async () => {
  const env = newEnv();
  await using other = await RunningBus.start(stores);
  await Promise.all(Array.from({ length: 1_200 }, (_, n) => schedule(env, 1_000, { idempotency_key: `s-${n}`, payload: { n } })));
  await Promise.all([bus.clock.advance('10s'), other.clock.advance('10s')]);
  await bus.clock.advance('10s');
  expect(await bus.store.client.xlen(`bus:{${env}}:app`)).toBe(1_200);

  const held = newEnv();
  await schedule(held, 1_000, { idempotency_key: 'held' });
  await bus.store.client.set(`bus:{${held}}:app`, 'no stream');
  await bus.clock.advance('10s');
  await bus.store.client.del(`bus:{${held}}:app`);
  await eventually(async () => {
    await bus.clock.advance('2s');
    return bus.store.client.xlen(`bus:{${held}}:app`);
  }).toBe(1);
  expect((await bus.consume(mail, { env_id: held })).map(({ idempotency_key }) => idempotency_key)).toEqual(['held']);
});

test('a process that dies between the move and the append leaves the event to the next one, which appends it once', async () => {
  const env = newEnv();
  const { schedule_id } = await schedule(env, 0, { idempotency_key: 'moved' });
  // As it stands after the moving statement and before any append.
  await bus.pool.raw`update scheduled_events set delivered_at = now() where schedule_id = ${schedule_id}`;
  await Inbox.leave(bus.pool.raw as never, newId(), [rowOf(env, 1, { id: schedule_id, idempotency_key: 'moved' })]);
  await using next = await RunningBus.start(stores);
  await next.clock.advance('20s');
  await bus.clock.advance('20s');
  expect(await bus.drain(mail, { env_id: env })).toMatchObject([{ idempotency_key: 'moved', inbox_id: schedule_id }]);
});

test('the depth of delayed events is a metric, and delivered ones are forgotten after a week', async () => {
  const env = newEnv();
  const depth = async () => ((await bus.call('metrics', shop)).value as { delayed_depth: number }).delayed_depth;
  const before = await depth();
  await schedule(env, 3_600_000);
  expect(await depth()).toBe(before + 1);
  await bus.pool.raw`update scheduled_events set delivered_at = now() - interval '8 days' where env_id = ${env}`;
  await bus.clock.leap('1h');
  expect(await rows(env)).toEqual([]);
});
