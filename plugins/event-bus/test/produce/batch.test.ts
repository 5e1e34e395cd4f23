import { eventually, openTestStores, type TestStores } from '@platform/testing';
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest';
import { stageOf } from '../../src/inbox/inbox-stage.ts';
import { newEnv, refusal, RunningBus, workload } from '../fixtures/running-bus.ts';

vi.setConfig({ testTimeout: 30_000, hookTimeout: 60_000 });

const shop = workload('shop');
const acme = workload('m2m-acme', 'acme');
let stores: TestStores;
let bus: RunningBus;
beforeAll(async () => {
  stores = await openTestStores();
  bus = await RunningBus.start(stores, { produceRate: 1, produceBurst: 10 });
});
afterAll(async () => {
  await bus[Symbol.asyncDispose]();
  await stores[Symbol.asyncDispose]();
});

const inboxOf = (env: string) =>
  bus.pool.raw<
    { idempotency_key: string; message_id: string | null }[]
  >`select idempotency_key, message_id from event_inbox where env_id = ${env} order by id`;
const streamOf = async (env: string, family = 'app'): Promise<Record<string, string>[]> => {
  const rows = await bus.store.client.xrange(`bus:{${env}}:${family}`, '-', '+');
  return rows.map(([id, fields]) => ({
    id,
    ...Object.fromEntries(
      Array.from({ length: fields.length / 2 }, (_, index) => [fields[2 * index] as string, fields[2 * index + 1] as string]),
    ),
  }));
};

// First: the inbox is looked at row by row, which takes long once it holds thousands.
describe('the group commit', () => {
  test('BUS-006 BUS-082 a row the database refuses fails alone, with the reason where it failed, is on no stream, and the marks of others are kept', async () => {
    const env = newEnv();
    await bus.pool.raw`alter table event_groups add constraint refused check (events not like '%platform:shop:order:bad%')`;
    try {
      const outcomes = await Promise.all(
        Array.from({ length: 40 }, (_, n) => refusal(bus.produce(shop, env, n, n === 17 ? { event_type: 'platform:shop:order:bad' } : {}))),
      );
      expect(outcomes.flatMap(({ code }, n) => (code === 'none' ? [] : [n]))).toEqual([17]);
      expect(outcomes[17]).toMatchObject({ code: 'inbox_failed', status: 500, detail: 'inbox persist: 23514' });
    } finally {
      await bus.pool.raw`alter table event_groups drop constraint refused`;
    }
    await eventually(async () => (await inboxOf(env)).filter(({ message_id }) => message_id === null).length).toBe(0);
    expect(await streamOf(env)).toHaveLength(39);
  });

  test('BUS-082 the reason says how far it came: no connection, one that was lost on the way, or a refusal', () => {
    const codes = ['ECONNREFUSED', 'POOL_BUSY', '53300', 'CONNECTION_CLOSED', 'ECONNRESET', '57P01', '23514', ''];
    const stages = ['pool', 'pool', 'pool', 'inbox commit', 'inbox commit', 'inbox commit', 'inbox persist', 'inbox persist'];
    expect(codes.map(code => stageOf({ code }))).toEqual(stages);
  });

  test('BUS-080 BUS-081: journal and audit log tell of produce', async () => {
    const env = newEnv();
    const { message_id } = await bus.produce(shop, env, 1, { correlation_id: 'corr-9', idempotency_key: 'j' });
    await bus.produce(shop, env, 1, { correlation_id: 'corr-10', idempotency_key: 'j' });
    const journal = () =>
      bus.pool
        .raw`select action, sub, stream_family, event_type, message_id, outcome, correlation_id from audit_journal where env_id = ${env}
          order by page_id`;
    await eventually(async () => (await journal()).length).toBe(2);
    expect((await journal())[0]).toEqual({
      action: 'produce',
      sub: 'shop',
      stream_family: 'app',
      event_type: 'platform:shop:order:created',
      message_id,
      outcome: 'accepted',
      correlation_id: 'corr-9',
    });
    expect((await journal())[1]).toMatchObject({ message_id, outcome: 'duplicate', correlation_id: 'corr-10' });
    await eventually(() => bus.host.logged.some(line => line['target'] === 'bus.audit' && JSON.stringify(line).includes('corr-10'))).toBe(
      true,
    );
  });

  test('many events are few statements', async () => {
    const env = newEnv();
    const count = async () => Number((await bus.pool.raw<{ xid: string }[]>`select pg_current_xact_id()::text as xid`)[0]?.xid);
    const before = await count();
    await Promise.all(Array.from({ length: 1_000 }, (_, n) => bus.produce(shop, env, n)));
    expect((await count()) - before).toBeLessThan(40);
    expect(await streamOf(env)).toHaveLength(1_000);
  });
});

describe('a batch', () => {
  const event = (env: string, n: number, more: object = {}) => ({
    event_type: 'platform:shop:order:created',
    env_id: env,
    stream_family: 'app',
    payload: { n },
    idempotency_key: `k-${n}`,
    ...more,
  });
  const batch = async (events: unknown[], as = shop) =>
    ((await bus.call('produceBatch', as, { body: { events } })).value as { results: Record<string, unknown>[] }).results;

  test('BUS-002 BUS-037 BUS-038 BUS-042 BUS-043: rows answer in their order, each for itself and its environment', async () => {
    const [one, two] = [newEnv(), newEnv()];
    const results = await batch([
      event(one, 1),
      event(one, 2, { stream_family: 'dlq' }),
      event(two, 3),
      { event_type: 7 },
      null,
      event(one, 4, { event_type: 'acme:a:b:c' }),
      event(one, 5, { surprise: 1 }),
      event(one, 6),
    ]);
    expect(results.map(({ message_id, error, status, stream }) => (message_id ? stream : `${error} ${status}`))).toEqual([
      `bus:${one}:app`,
      'invalid_stream_family 400',
      `bus:${two}:app`,
      'invalid_event_type 400',
      'invalid_event 400',
      'event_ownership 403',
      'invalid_event 400',
      `bus:${one}:app`,
    ]);
    expect(results.every(result => 'error' in result !== 'message_id' in result)).toBe(true);
    expect((await streamOf(one)).map(({ payload }) => payload)).toEqual(['{"n":1}', '{"n":6}']);
  });

  test('BUS-041: none and a hundred and one are refused whole; a hundred are taken', async () => {
    const env = newEnv();
    expect(await refusal(batch([]))).toMatchObject({ code: 'batch_size', status: 400 });
    expect(await refusal(batch(Array.from({ length: 101 }, (_, n) => event(env, n))))).toMatchObject({ code: 'batch_size' });
    expect(await inboxOf(env)).toEqual([]);
    expect(await batch(Array.from({ length: 100 }, (_, n) => event(env, n)))).toHaveLength(100);
    expect(await streamOf(env)).toHaveLength(100);
  });

  test('rows over the bucket fail alone', async () => {
    const env = newEnv();
    const results = await batch(
      Array.from({ length: 12 }, (_, n) => event(env, n, { event_type: 'acme:shop:order:created' })),
      acme,
    );
    expect(results.map(({ error }) => error ?? 'ok')).toEqual([...Array(10).fill('ok'), 'rate_limited', 'rate_limited']);
  });

  test('events of an environment leave in the order they came: of many batches and singles at once, each in its own', async () => {
    const env = newEnv();
    await Promise.all(Array.from({ length: 30 }, (_, b) => batch(Array.from({ length: 40 }, (_, n) => event(env, b * 100 + n)))));
    const seen = (await bus.drain(workload('reader'), { env_id: env })).map(({ payload }) => payload.n as number);
    expect(seen).toHaveLength(1_200);
    for (let b = 0; b < 30; b++)
      expect(seen.filter(n => Math.floor(n / 100) === b)).toEqual(Array.from({ length: 40 }, (_, n) => b * 100 + n));
    // Requests that follow each other in one turn of the loop follow each other on the stream, too.
    expect(seen.filter(n => n % 100 === 0)).toEqual(Array.from({ length: 30 }, (_, b) => b * 100));
  });
});
