import { checkManifest } from '@platform/checks';
import { notification } from '@platform/notification/contract';
import { statistics } from '@platform/statistics/contract';
import { as, eventually, manifestOf, newId, openTestStores, type TestStores } from '@platform/testing';
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest';
import { eventBus } from '../../contract/index.ts';
import { Inbox } from '../../src/inbox/inbox.ts';
import { mintedKey, NO_KEY } from '../../src/produce/minted-key.ts';
import { rowOf } from '../fixtures/left-behind.ts';
import { newEnv, person, refusal, RunningBus, workload } from '../fixtures/running-bus.ts';

vi.setConfig({ testTimeout: 30_000, hookTimeout: 60_000 });

const shop = workload('shop');
const acme = workload('m2m-acme', 'acme');
let stores: TestStores;
let bus: RunningBus;
beforeAll(async () => {
  stores = await openTestStores();
  // Each waives one name in its contract; what such an event carries is not asked here.
  const manifests = [statistics, notification].map(contract => ({ ...manifestOf(contract, '1.0.0'), events: {} }));
  bus = await RunningBus.start(stores, { produceRate: 1, produceBurst: 10, manifests });
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

test('the contract passes the checks of the host', () => {
  expect(checkManifest(manifestOf(eventBus, '0.1.0')).map(({ id, where, what }) => `${id} ${where} ${what}`)).toEqual([]);
});

describe('one event', () => {
  test('BUS-001 BUS-006 BUS-008 BUS-029: it is stored and on its stream when the answer names its id', async () => {
    const env = newEnv();
    const { message_id, stream } = await bus.produce(shop, env, 1, { idempotency_key: 'k-1' });
    expect(stream).toBe(`bus:${env}:app`);
    expect((await streamOf(env)).map(({ id }) => id)).toEqual([message_id]);
    expect((await inboxOf(env)).map(({ idempotency_key }) => idempotency_key)).toEqual(['k-1']);
    await eventually(async () => (await inboxOf(env))[0]?.message_id).toBe(message_id);
  });

  test('BUS-027: the entry says what happened, where, when, by whom, and on whose behalf', async () => {
    const env = newEnv();
    await bus.produce(workload('shop-relay'), env, 7, {
      idempotency_key: 'k',
      correlation_id: 'corr-1',
      created_at: '2026-01-02T03:04:05.678Z',
      publisher_id_token: 'idt',
    });
    const [entry] = await streamOf(env);
    expect(entry).toMatchObject({
      event_type: 'platform:shop:order:created',
      payload: '{"n":7}',
      created_at: '2026-01-02T03:04:05.678Z',
      produced_by: 'shop-relay',
      publisher_subject: 'shop-relay',
      correlation_id: 'corr-1',
      idempotency_key: 'k',
      publisher_id_token: 'idt',
    });
    expect(Date.parse((entry as { produced_at: string }).produced_at)).not.toBeNaN();
    const [read] = await bus.consume(shop, { env_id: env });
    expect(read).toMatchObject({
      env_id: env,
      stream: `bus:${env}:app`,
      stream_family: 'app',
      payload: { n: 7 },
      created_at: '2026-01-02T03:04:05.678Z',
    });
  });

  test('BUS-007: of fifty copies in one process one is stored, and every one gets its id', async () => {
    const env = newEnv();
    const copies = await Promise.all(Array.from({ length: 50 }, () => bus.produce(shop, env, 1, { idempotency_key: 'same' })));
    expect(new Set(copies.map(({ message_id }) => message_id)).size).toBe(1);
    expect(copies.filter(({ replayed }) => !replayed)).toHaveLength(1);
    expect(await streamOf(env)).toHaveLength(1);
  });

  test('BUS-007: of a hundred copies at once one is stored and appended, and all get its id; so do later ones and those of another process', async () => {
    const env = newEnv();
    await using other = await RunningBus.start(stores);
    const copies = await Promise.all(
      Array.from({ length: 100 }, (_, n) =>
        (n % 2 ? bus : other).produce(shop, env, n, { idempotency_key: 'same' }).catch((error: { code: string }) => error.code),
      ),
    );
    const answered = copies.filter(copy => typeof copy !== 'string');
    // A process that meets the other's unfinished row says so, and is asked again.
    expect(copies.filter(copy => typeof copy === 'string' && copy !== 'append_pending')).toEqual([]);
    expect(new Set(answered.map(({ message_id }) => message_id)).size).toBe(1);
    expect(answered.filter(({ replayed }) => !replayed)).toHaveLength(1);
    expect(await streamOf(env)).toHaveLength(1);
    expect(await inboxOf(env)).toHaveLength(1);
    await eventually(() =>
      other.produce(shop, env, 101, { idempotency_key: 'same' }).then(
        ({ message_id, replayed }) => ({ message_id, replayed }),
        () => undefined,
      ),
    ).toEqual({ message_id: answered[0]?.message_id, replayed: true });
  });

  test('BUS-007 an event without a key is given one of its own, which no row remembers and which is known all the same when it comes back', async () => {
    const [env, elsewhere] = [newEnv(), newEnv()];
    const rows = async () => (await bus.pool.raw<{ count: number }[]>`select count(*)::int as count from event_keys`)[0]?.count;
    const before = await rows();
    const sent = await Promise.all([1, 2, 3].map(n => bus.produce(shop, env, n)));
    expect(await rows()).toBe(before);
    const entries = await streamOf(env);
    const keys = entries.map(({ idempotency_key }) => idempotency_key as string);
    expect(new Set(keys).size).toBe(3);
    await eventually(async () => (await inboxOf(env)).map(({ idempotency_key, message_id }) => [idempotency_key, message_id])).toEqual(
      entries.map(({ id }, index) => [keys[index], id]),
    );
    const [, second] = entries;
    expect(await bus.produce(shop, env, 2, { idempotency_key: keys[1] })).toMatchObject({ message_id: second?.['id'], replayed: true });
    const event = { event_type: 'platform:shop:order:created', env_id: env, stream_family: 'app' };
    const { value } = await bus.call('produceBatch', shop, {
      body: {
        events: [
          { ...event, payload: { n: 4 } },
          { ...event, payload: { n: 3 }, idempotency_key: keys[2] },
        ],
      },
    });
    expect(
      (value as { results: { message_id: string }[] }).results.map(({ message_id }) => sent.some(known => known.message_id === message_id)),
    ).toEqual([false, true]);
    expect(await streamOf(env)).toHaveLength(4);
    // Of somebody else, or elsewhere, it is a key like any other; so is one that only looks like it.
    for (const [as, at, key] of [
      [workload('mail'), env, keys[0]],
      [shop, elsewhere, keys[0]],
      [shop, env, `${newId()}.0`],
    ] as const) {
      const first = await bus.produce(as, at, 5, { idempotency_key: key });
      expect([first.replayed, sent.some(known => known.message_id === first.message_id)]).toEqual([false, false]);
      await eventually(() => bus.produce(as, at, 5, { idempotency_key: key }).catch(() => undefined)).toEqual({ ...first, replayed: true });
    }
  });

  test('BUS-007 a minted key that comes back before its entry is noted is answered later', async () => {
    const env = newEnv();
    const id = newId();
    await Inbox.leave(bus.pool.raw as never, id, [rowOf(env, 1, { idempotency_key: NO_KEY })]);
    await bus.pool.raw`update event_groups set append_by = now() + interval '1 hour' where id = ${id}`;
    expect(await refusal(bus.produce(shop, env, 1, { idempotency_key: mintedKey(id, 0) }))).toMatchObject({
      code: 'append_pending',
      headers: { 'retry-after': '1' },
    });
    await bus.pool.raw`update event_groups set append_by = now() where id = ${id}`;
    await bus.clock.advance('2s');
    expect(await bus.produce(shop, env, 1, { idempotency_key: mintedKey(id, 0) })).toMatchObject({
      message_id: (await streamOf(env))[0]?.['id'],
      replayed: true,
    });
    expect((await streamOf(env)).map(({ idempotency_key }) => idempotency_key)).toEqual([mintedKey(id, 0)]);
  });

  test('the same key of another subject or in another environment is another event', async () => {
    const [one, two] = [newEnv(), newEnv()];
    await Promise.all([
      bus.produce(shop, one, 1, { idempotency_key: 'k' }),
      bus.produce(workload('mail'), one, 2, { idempotency_key: 'k' }),
      bus.produce(shop, two, 3, { idempotency_key: 'k' }),
    ]);
    expect([await streamOf(one), await streamOf(two)].map(entries => entries.length)).toEqual([2, 1]);
  });

  const refused: [string, Record<string, unknown>, string, number][] = [
    ['a dot', { event_type: 'platform:shop:order.created:v' }, 'invalid_event_type', 400],
    ['three segments', { event_type: 'platform:shop:created' }, 'invalid_event_type', 400],
    ['the suffix only the bus may append', { event_type: 'platform:shop:order:created.replayed' }, 'invalid_event_type', 400],
    ['a family without a name', { stream_family: '' }, 'invalid_stream_family', 400],
    ['a family with a colon', { stream_family: 'a:b' }, 'invalid_stream_family', 400],
    ['a family of 65 characters', { stream_family: 'f'.repeat(65) }, 'invalid_stream_family', 400],
    ['dlq', { stream_family: 'dlq' }, 'invalid_stream_family', 400],
    ['delayed', { stream_family: 'delayed' }, 'invalid_stream_family', 400],
    ['jti', { stream_family: 'jti' }, 'invalid_stream_family', 400],
    ['a payload that is a list', { payload: [1] }, 'payload_not_object', 400],
    ['a payload that is null', { payload: null }, 'payload_not_object', 400],
    ['a payload over 256 KiB', { payload: { text: 'x'.repeat(262_144) } }, 'payload_too_large', 413],
    ['no environment', { env_id: undefined }, 'env_required', 400],
    ['an event of another vertical', { event_type: 'acme:shop:order:created' }, 'event_ownership', 403],
  ];
  test.each(refused)(
    'BUS-005 BUS-019 BUS-030 BUS-031 BUS-070 an event with %s is refused, and nothing is stored',
    async (_, change, code, status) => {
      const env = newEnv();
      expect(await refusal(bus.produce(shop, env, 1, change))).toMatchObject({ code, status });
      expect(await inboxOf(env)).toEqual([]);
    },
  );

  test('BUS-030 a family is of one to sixty-four letters, digits, dots, underscores and hyphens', async () => {
    const env = newEnv();
    for (const stream_family of ['a', '0', 'Az-09_x.y', 'f'.repeat(64)])
      expect((await bus.produce(shop, env, 1, { stream_family })).stream).toBe(`bus:${env}:${stream_family}`);
  });
  test('the literal legacy names are accepted from their own service', async () => {
    const env = newEnv();
    await bus.produce(workload('stat'), env, 1, { event_type: 'platform:stat.aggregate.updated' });
    await bus.produce(workload('post'), env, 1, { event_type: 'platform:notification:received' });
    expect(await refusal(bus.produce(shop, env, 1, { event_type: 'platform:stat.aggregate.updated' }))).toMatchObject({
      code: 'invalid_event_type',
    });
  });

  test('BUS-072 BUS-073 BUS-076: who has no vertical owns no event; a person is told first that the environment is another', async () => {
    const [own, foreign] = [newEnv(), newEnv()];
    const event = { event_type: 'platform:shop:order:created' };
    expect(await refusal(bus.produce({ ...workload('stray'), vertical: undefined }, own, 1, event))).toMatchObject({
      code: 'event_ownership',
      status: 403,
    });
    expect(await refusal(bus.produce(person(own), own, 1, event))).toMatchObject({ code: 'event_ownership', status: 403 });
    expect(await refusal(bus.produce(person(own), foreign, 1, event))).toMatchObject({ code: 'env_mismatch', status: 403 });
    // Nor has who acts for a person: the token of an exchange names no vertical.
    const acting = as.delegated(own, 'bus:produce');
    expect(await refusal(bus.produce(acting, own, 1, event))).toMatchObject({ code: 'event_ownership', status: 403 });
    expect(await refusal(bus.produce(acme, own, 1, { event_type: 'globex:shop:order:created' }))).toMatchObject({
      detail: "event_ownership: vertical 'acme' may not produce 'globex:shop:order:created'",
    });
  });

  test('produce into a suspended environment is refused to verticals, and open again when it is resumed', async () => {
    const env = newEnv();
    const change = (status: string, key: string) =>
      bus.produce(workload('sys'), env, 0, {
        event_type: 'platform:sys:env:updated',
        stream_family: 'sys',
        payload: { env_id: env, status },
        idempotency_key: key,
      });
    await change('suspended', 'off');
    const suspended = async () => (await bus.pool.raw`select 1 from suspended_environments where env_id = ${env}`).length;
    await eventually(suspended).toBe(1);
    expect(await refusal(bus.produce(acme, env, 1))).toMatchObject({ code: 'env_suspended', status: 403 });
    await bus.produce(shop, env, 1);
    await change('active', 'on');
    await eventually(suspended).toBe(0);
    expect((await refusal(bus.produce(acme, env, 1))).code).toBe('none');
  });

  test('the bucket of an environment refuses a vertical what is too much, with the time to come back, and never the platform', async () => {
    const [env, other] = [newEnv(), newEnv()];
    const burst = await Promise.all(Array.from({ length: 20 }, (_, n) => refusal(bus.produce(acme, env, n))));
    const limited = burst.filter(({ status }) => status === 429);
    expect(limited.length).toBeGreaterThanOrEqual(3);
    expect(limited[0]).toMatchObject({ code: 'rate_limited', headers: { 'retry-after': '1' } });
    expect((await refusal(bus.produce(acme, other, 1))).code).toBe('none');
    expect((await Promise.all(Array.from({ length: 30 }, (_, n) => refusal(bus.produce(shop, env, n))))).map(({ code }) => code)).toEqual(
      Array(30).fill('none'),
    );
  });
});
