import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest';
import { eventually } from '../../../../kernel/storage/fixtures/eventually.ts';
import { bearer, BusProcess, newEnv, person, Stores, workload } from '../harness.ts';

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
  (await bus.call('nack', mail, { body: { env_id: env, stream_family: 'app', consumer_group: 'g', message_ids: ids, ...more } })).value as {
    queued: number;
  };
const letters = async (env: string, query: object = {}) =>
  (await bus.call('listDeadLetters', shop, { query: { env_id: env, ...query } })).value as { items: Letter[]; next_cursor: string | null };
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
  await eventually(async () =>
    (await added()).map(({ event_type, payload }) => [event_type, (payload as { dlq_id?: string }).dlq_id]),
  ).toEqual([['platform:bus:dlq:added', items[0]?.dlq_id]]);
});

test('an entry that no try can help goes straight to the dead letters, and one that sixteen consumers left behind', async () => {
  const env = newEnv();
  await bus.produce(shop, env, 1);
  expect(await nack(env, [(await readOne(env))?.message_id as string], { dead_letter: true, reason: 'slug_taken: no' })).toEqual({
    queued: 1,
    lost: [],
  });
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
  const replays = await Promise.all(
    Array.from({ length: 12 }, () => refusal(bus.call('replayDeadLetters', shop, { body: { env_id: env, dlq_id: dlqId } }))),
  );
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
  // The canonical trail hears of it too: the journal is kept for ninety days, and read by nobody else (REG-004).
  const recorded = await bus.pool.raw`select payload from outbox where event_type = 'audit' and env_id = ${env} order by created_at, id`;
  expect(recorded.map(({ payload }) => payload)).toMatchObject(
    [dlqId, again?.dlq_id].map(id => ({
      action: 'bus.deadletter.replayed',
      actor: { kind: 'workload', id: shop.subject },
      resource: { type: 'dead_letter', id },
      details: { event_type: 'platform:shop:order:created.replayed', stream_family: 'app' },
    })),
  );
  await eventually(async () => (await bus.pool.raw`select 1 from audit_journal where env_id = ${env} and action = 'replay'`).length).toBe(
    2,
  );
});

test('H-25 a dead letter keeps the reason, time and consumer of every attempt, those before idle redeliveries too', async () => {
  const env = newEnv();
  await bus.produce(shop, env, 1);
  await nack(env, [(await readOne(env))?.message_id as string], { retry_after_secs: 0, reason: 'first fault', consumer: 'default' });
  await bus.clock.advance('10s');
  const copy = (await readOne(env))?.message_id as string;
  await bus.store.client.call('XCLAIM', `bus:{${env}}:app`, 'mail.g', 'gone', 0, copy, 'IDLE', 61_000, 'RETRYCOUNT', 16, 'JUSTID');
  expect(await bus.consume(mail, { env_id: env })).toEqual([]);
  expect((await letters(env)).items[0]).toMatchObject({
    reason: 'max_deliveries',
    reasons: ['first fault', 'max_deliveries'],
    history: [{ reason: 'first fault', consumer: 'default', at: expect.stringMatching(/Z$/) }, { reason: 'max_deliveries' }],
    entry: { payload: { n: 1 } },
  });
});

describe('a replay by filter', () => {
  const bury = async (env: string, n: number, more: { event_type?: string; stream_family?: string; reason?: string } = {}) => {
    const { reason = 'fault', ...event } = more;
    await bus.produce(shop, env, n, event);
    const family = more.stream_family ?? 'app';
    const [entry] = await bus.consume(mail, { env_id: env, stream_family: family });
    await bus.call('nack', mail, {
      body: { env_id: env, stream_family: family, consumer_group: 'g', message_id: entry?.message_id, dead_letter: true, reason },
    });
  };
  const replay = async (env: string, body: object) =>
    (await bus.call('replayDeadLetters', shop, { body: { env_id: env, ...body } })).value as {
      dry_run: boolean;
      matched: number;
      replayed: number;
      more: boolean;
      matches: { dlq_id: string; event_type: string }[];
    };

  test('BUS-039 a dry run names what it would replay and touches nothing; the run replays exactly that, oldest first', async () => {
    const env = newEnv();
    await bury(env, 1, { reason: 'smtp: down' });
    await bury(env, 2, { event_type: 'platform:shop:order:paid', reason: 'smtp: down' });
    await bury(env, 3, { stream_family: 'sys', reason: 'smtp: down' });
    await bury(env, 4, { reason: 'bad address' });
    await bury(env, 5, { reason: 'smtp: down again' });
    const filter = { stream_family: 'app', event_type: 'platform:shop:order:created', reason: 'smtp', group: 'mail.g' };
    const dry = await replay(env, { filter, dry_run: true });
    expect(dry).toMatchObject({ dry_run: true, matched: 2, replayed: 0, more: false });
    expect((await letters(env)).items).toHaveLength(5);
    expect(await bus.consume(mail, { env_id: env })).toEqual([]);
    const run = await replay(env, { filter });
    expect(run).toMatchObject({ dry_run: false, matched: 2, replayed: 2, more: false });
    expect(run.matches.map(({ dlq_id }) => dlq_id)).toEqual(dry.matches.map(({ dlq_id }) => dlq_id));
    expect((await bus.consume(mail, { env_id: env })).map(({ payload, event_type }) => [payload.n, event_type])).toEqual([
      [1, 'platform:shop:order:created.replayed'],
      [5, 'platform:shop:order:created.replayed'],
    ]);
    expect((await letters(env)).items.map(({ entry }) => entry.payload.n)).toEqual([4, 3, 2]);
    expect((await letters(env, { reason: 'address' })).items.map(({ entry }) => entry.payload.n)).toEqual([4]);
  });

  test('a limit leaves the rest for the next call and says so; ids can be tried dry as well; times bound it', async () => {
    const env = newEnv();
    for (const n of [1, 2, 3]) {
      await bury(env, n);
      await bus.clock.advance('1s');
    }
    expect(await replay(env, { filter: {}, limit: 2, dry_run: true })).toMatchObject({ matched: 2, more: true });
    const [newest] = (await letters(env)).items as (Letter & { failed_at: string })[];
    expect(await replay(env, { filter: { failed_before: newest?.failed_at }, dry_run: true })).toMatchObject({ matched: 2, more: false });
    expect(await replay(env, { filter: { failed_after: newest?.failed_at }, dry_run: true })).toMatchObject({ matched: 0 });
    expect(await replay(env, { dlq_ids: [newest?.dlq_id], dry_run: true })).toMatchObject({ dry_run: true, matched: 1, replayed: 0 });
    expect(await replay(env, { filter: {}, limit: 2 })).toMatchObject({ replayed: 2, more: true });
    expect((await letters(env)).items).toHaveLength(1);
    expect(await refusal(bus.call('replayDeadLetters', shop, { body: { env_id: env } }))).toMatchObject({ code: 'message_ids_required' });
  });

  test('two runs at once replay each once; the page’s form is dry unless told', async () => {
    const env = newEnv();
    for (let n = 0; n < 20; n++) await bury(env, n);
    const runs = await Promise.all([replay(env, { filter: {} }), replay(env, { filter: {} })]);
    expect(runs.reduce((sum, { replayed }) => sum + replayed, 0)).toBe(20);
    expect(await bus.consume(mail, { env_id: env })).toHaveLength(20);
    await bury(env, 99, { stream_family: 'sys' });
    const origin = await bus.listen();
    const answer = await fetch(`${origin}/v1/admin/dlq/replayMatching?target_env_id=${env}`, {
      method: 'POST',
      headers: { authorization: bearer(person(env)), 'content-type': 'application/json' },
      body: '{}',
    });
    expect([answer.status, await answer.json()]).toMatchObject([200, { dry_run: true, matched: 1, replayed: 0 }]);
  });
});

test('several processes reap the same retries at once: each entry comes back once', async () => {
  await using other = await BusProcess.start(stores);
  const env = newEnv();
  for (let n = 0; n < 50; n++) await bus.produce(shop, env, n);
  const ids = (await bus.consume(mail, { env_id: env })).map(({ message_id }) => message_id);
  await nack(env, ids, { retry_after_secs: 0 });
  await Promise.all([bus.clock.advance('10s'), other.clock.advance('10s')]);
  await bus.clock.advance('10s');
  expect(
    (await bus.drain(mail, { env_id: env })).map(({ payload }) => payload.n).sort((left, right) => Number(left) - Number(right)),
  ).toEqual(Array.from({ length: 50 }, (_, n) => n));
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
  const replayed = await fetch(`${origin}/v1/admin/dlq/${letter?.dlq_id}/replay?target_env_id=${env}`, {
    method: 'POST',
    headers,
    body: '{}',
  });
  expect([replayed.status, await replayed.json()]).toMatchObject([200, { event_type: 'platform:shop:order:created.replayed' }]);
  expect((await letters(env)).items).toEqual([]);
});

test('a person sees no dead letter of another environment', async () => {
  expect(await refusal(bus.call('listDeadLetters', person(newEnv()), { query: { env_id: newEnv() } }))).toMatchObject({
    code: 'env_mismatch',
    status: 403,
  });
});
