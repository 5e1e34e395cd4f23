import { afterAll, beforeAll, expect, test, vi } from 'vitest';
import { eventually } from '../../../kernel/storage/fixtures/eventually.ts';
import { bearer, BusProcess, newEnv, person, Stores, workload } from './harness.ts';

vi.setConfig({ testTimeout: 30_000, hookTimeout: 60_000 });

const shop = workload('shop');
const mail = workload('mail');
const stat = workload('stat');
let stores: Stores;
let bus: BusProcess;
beforeAll(async () => {
  stores = await Stores.start();
  bus = await BusProcess.start(stores);
});
afterAll(async () => {
  await bus[Symbol.asyncDispose]();
  await stores[Symbol.asyncDispose]();
});

interface Letter {
  readonly dlq_id: string;
  readonly reason: string;
  readonly reasons: string[];
  readonly attempts: number;
  readonly group: string;
  readonly entry: { payload: { n: number }; event_type: string; idempotency_key: string };
}
const refusal = (work: Promise<unknown>): Promise<{ code: string; status: number }> =>
  work.then(
    () => ({ code: 'none', status: 200 }),
    error => error,
  );
const nack = async (env: string, ids: string[], more: object = {}) =>
  (await bus.call('nack', mail, { body: { env_id: env, stream_family: 'app', consumer_group: 'g', message_ids: ids, ...more } })).value as { queued: number };
const letters = async (env: string, query: object = {}) => (await bus.call('listDeadLetters', shop, { query: { env_id: env, ...query } })).value as { items: Letter[]; next_cursor: string | null };
const readOne = async (env: string) => {
  const [entry, ...more] = await bus.consume(mail, { env_id: env });
  expect(more).toEqual([]);
  return entry;
};

test('BUS-046 BUS-016 BUS-015 BUS-035: a refused entry leaves its group and comes back once its time has come, counted, under the same key', async () => {
  const env = newEnv();
  await bus.produce(shop, env, 1, { idempotency_key: 'k' });
  const first = await readOne(env);
  expect(await nack(env, [first?.message_id as string, '1-1'], { reason: 'not yet' })).toEqual({ queued: 1, lost: ['1-1'] });
  expect(await nack(env, [first?.message_id as string])).toEqual({ queued: 0, lost: [first?.message_id] });
  expect((await bus.store.client.xpending(`bus:{${env}}:app`, 'mail.g'))[0]).toBe(0);
  await bus.clock.advance('20s');
  expect(await bus.consume(mail, { env_id: env })).toEqual([]);
  await bus.clock.advance('10s');
  expect(await readOne(env)).toMatchObject({ payload: { n: 1 }, idempotency_key: 'k', delivery_count: 2 });
});

test('the copy of a refused entry is for the group that refused it', async () => {
  const env = newEnv();
  await bus.produce(shop, env, 1);
  expect(await bus.drain(stat, { env_id: env })).toHaveLength(1);
  await nack(env, [(await readOne(env))?.message_id as string], { retry_after_secs: 0 });
  await bus.clock.advance('10s');
  expect(await bus.consume(stat, { env_id: env })).toEqual([]);
  expect((await bus.store.client.xpending(`bus:{${env}}:app`, 'stat.g'))[0]).toBe(0);
  expect(await readOne(env)).toMatchObject({ payload: { n: 1 } });
});

test('BUS-004 BUS-017 BUS-034: the fifth refusal makes a dead letter with the reason of every attempt, and the bus says so', async () => {
  const env = newEnv();
  await bus.produce(shop, env, 1);
  for (let attempt = 1; attempt <= 5; attempt++) {
    const entry = await readOne(env);
    expect(entry?.delivery_count).toBe(attempt);
    await nack(env, [entry?.message_id as string], { retry_after_secs: 5, reason: `fault ${attempt}` });
    await bus.clock.advance('10s');
  }
  expect(await bus.consume(mail, { env_id: env })).toEqual([]);
  const { items } = await letters(env);
  expect(items).toMatchObject([
    {
      env_id: env,
      stream_family: 'app',
      reason: 'retries_exhausted: fault 5',
      reasons: ['fault 1', 'fault 2', 'fault 3', 'fault 4', 'fault 5'],
      attempts: 5,
      group: 'mail.g',
      entry: { payload: { n: 1 }, event_type: 'platform:shop:order:created' },
    },
  ]);
  const added = () => bus.drain(stat, { env_id: env, stream_family: 'bus' });
  await eventually(async () => (await added()).map(({ event_type, payload }) => [event_type, (payload as { dlq_id?: string }).dlq_id])).toEqual([['platform:bus:dlq:added', items[0]?.dlq_id]]);
});

test('an entry that no try can help goes straight to the dead letters, and one that sixteen consumers left behind', async () => {
  const env = newEnv();
  await bus.produce(shop, env, 1);
  expect(await nack(env, [(await readOne(env))?.message_id as string], { dead_letter: true, reason: 'slug_taken: no' })).toEqual({ queued: 1, lost: [] });
  expect((await letters(env)).items).toMatchObject([{ reason: 'slug_taken: no', attempts: 1 }]);
  await bus.produce(shop, env, 2);
  const left = (await readOne(env))?.message_id as string;
  await bus.store.client.call('XCLAIM', `bus:{${env}}:app`, 'mail.g', 'gone', 0, left, 'IDLE', 61_000, 'RETRYCOUNT', 15, 'JUSTID');
  expect(await readOne(env)).toMatchObject({ delivery_count: 16 });
  await bus.store.client.call('XCLAIM', `bus:{${env}}:app`, 'mail.g', 'gone', 0, left, 'IDLE', 61_000, 'JUSTID');
  expect(await bus.consume(mail, { env_id: env })).toEqual([]);
  expect((await letters(env)).items[0]).toMatchObject({ reason: 'max_deliveries', attempts: 16, entry: { payload: { n: 2 } } });
});

test('BUS-050: dead letters are listed newest first, page by page, and by family', async () => {
  const env = newEnv();
  for (let n = 1; n <= 5; n++) {
    await bus.produce(shop, env, n);
    await nack(env, [(await readOne(env))?.message_id as string], { dead_letter: true });
  }
  const one = await letters(env, { limit: 2 });
  const two = await letters(env, { limit: 2, cursor: one.next_cursor });
  const three = await letters(env, { limit: 2, cursor: two.next_cursor });
  expect([one, two, three].map(({ items }) => items.map(({ entry }) => entry.payload.n))).toEqual([[5, 4], [3, 2], [1]]);
  expect(three.next_cursor).toBe(null);
  expect((await letters(env, { stream_family: 'other' })).items).toEqual([]);
  expect((await letters(newEnv())).items).toEqual([]);
  expect(await refusal(letters(env, { cursor: 'nonsense' }))).toMatchObject({ code: 'bad_cursor' });
});

test('BUS-039 BUS-040: a replay takes the dead letter away and appends the event as ".replayed" under a key of its own; in parallel, once', async () => {
  const env = newEnv();
  await bus.produce(shop, env, 1, { idempotency_key: 'k' });
  await nack(env, [(await readOne(env))?.message_id as string], { dead_letter: true });
  const [letter] = (await letters(env)).items;
  const dlqId = letter?.dlq_id as string;
  const replays = await Promise.all(Array.from({ length: 12 }, () => refusal(bus.call('replayDeadLetters', shop, { body: { env_id: env, dlq_id: dlqId } }))));
  expect(replays.map(({ code }) => code).sort()).toEqual(['none', ...Array(11).fill('unknown_dead_letter')].sort());
  expect((await letters(env)).items).toEqual([]);
  const entry = await readOne(env);
  expect(entry).toMatchObject({
    event_type: 'platform:shop:order:created.replayed',
    payload: { n: 1 },
    idempotency_key: `k:replay:${dlqId}`,
    original_idempotency_key: 'k',
    replayed_from_dlq: true,
    delivery_count: 1,
  });

  // Dead again and replayed again, the name does not grow.
  await nack(env, [entry?.message_id as string], { dead_letter: true });
  const [again] = (await letters(env)).items;
  const { value } = await bus.call('replayDeadLetters', shop, { body: { env_id: env, dlq_ids: [again?.dlq_id, dlqId] } });
  expect(value).toMatchObject({
    results: [
      { event_type: 'platform:shop:order:created.replayed', stream: `bus:${env}:app` },
      { dlq_id: dlqId, error: 'unknown_dead_letter', status: 404 },
    ],
  });
  expect(await readOne(env)).toMatchObject({ idempotency_key: `k:replay:${again?.dlq_id}`, original_idempotency_key: 'k' });
  await eventually(async () => (await bus.pool.raw`select 1 from audit_journal where env_id = ${env} and action = 'replay'`).length).toBe(2);
});

test('the page of dead letters replays one of its rows', async () => {
  const origin = await bus.listen();
  const env = newEnv();
  await bus.produce(shop, env, 1);
  await nack(env, [(await readOne(env))?.message_id as string], { dead_letter: true });
  const [letter] = (await letters(env)).items;
  const headers = { authorization: bearer(person(env)), 'content-type': 'application/json' };
  const listed = await fetch(`${origin}/v1/admin/dlq?target_env_id=${env}`, { headers });
  expect(await listed.json()).toMatchObject({ items: [{ dlq_id: letter?.dlq_id }] });
  const replayed = await fetch(`${origin}/v1/admin/dlq/${letter?.dlq_id}/replay?target_env_id=${env}`, { method: 'POST', headers, body: '{}' });
  expect([replayed.status, await replayed.json()]).toMatchObject([200, { event_type: 'platform:shop:order:created.replayed' }]);
  expect((await letters(env)).items).toEqual([]);
});

test('a person sees no dead letter of another environment', async () => {
  expect(await refusal(bus.call('listDeadLetters', person(newEnv()), { query: { env_id: newEnv() } }))).toMatchObject({ code: 'env_mismatch', status: 403 });
});
