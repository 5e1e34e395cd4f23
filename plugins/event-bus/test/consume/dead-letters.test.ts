import { eventually, openTestStores, type TestStores } from '@platform/testing';
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest';
import { newEnv, person, refusal, RunningBus, workload } from '../fixtures/running-bus.ts';

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

interface Letter {
  readonly dlq_id: string;
  readonly reason: string;
  readonly reasons: string[];
  readonly attempts: number;
  readonly group: string;
  readonly entry: { payload: { n: number }; event_type: string; idempotency_key: string };
}
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
  expect(await refusal(letters(env, { cursor: 'nonsense' }))).toMatchObject({ code: 'invalid_cursor' });
});

test('BUS-080 BUS-039 BUS-040: a replay takes the dead letter away and appends the event as ".replayed" under a key of its own; in parallel, once', async () => {
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
      actor: { kind: 'workload', id: shop.id },
      resource: { type: 'dead_letter', id },
      details: { event_type: 'platform:shop:order:created.replayed', stream_family: 'app' },
    })),
  );
  await eventually(async () => (await bus.pool.raw`select 1 from audit_journal where env_id = ${env} and action = 'replay'`).length).toBe(
    2,
  );
  const told = bus.host.logged.filter(line => line['target'] === 'bus.audit').map(line => JSON.stringify(line));
  expect(told.some(line => line.includes('"replay"') && line.includes(env))).toBe(true);
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
    const answer = await bus.host.fetch(`/v1/admin/dlq/replayMatching?target_env_id=${env}`, {
      method: 'POST',
      persona: person(env),
      body: '{}',
    });
    expect([answer.status, answer.json]).toMatchObject([200, { dry_run: true, matched: 1, replayed: 0 }]);
  });
});

test('the page of dead letters replays one of its rows', async () => {
  const env = newEnv();
  await bus.produce(shop, env, 1);
  await nack(env, [(await readOne(env))?.message_id as string], { dead_letter: true });
  const [letter] = (await letters(env)).items;
  const persona = person(env);
  const listed = await bus.host.fetch(`/v1/admin/dlq?target_env_id=${env}`, { persona });
  expect(listed.json).toMatchObject({ items: [{ dlq_id: letter?.dlq_id }] });
  const replayed = await bus.host.fetch(`/v1/admin/dlq/${letter?.dlq_id}/replay?target_env_id=${env}`, {
    method: 'POST',
    persona,
    body: '{}',
  });
  expect([replayed.status, replayed.json]).toMatchObject([200, { event_type: 'platform:shop:order:created.replayed' }]);
  expect((await letters(env)).items).toEqual([]);
});

test('a person sees no dead letter of another environment', async () => {
  expect(await refusal(bus.call('listDeadLetters', person(newEnv()), { query: { env_id: newEnv() } }))).toMatchObject({
    code: 'env_mismatch',
    status: 403,
  });
});
