import { readFileSync } from 'node:fs';
import { eventually, newId, openTestStores, type PostgresPool, servicePool, type TestStores } from '@platform/testing';
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest';
import { InboxGroup, keyOf } from '../../src/inbox/inbox-group.ts';
import { Inbox } from '../../src/inbox/inbox.ts';
import { lineOf } from '../../src/inbox/journal.ts';
import { Notes } from '../../src/inbox/notes.ts';
import { GroupCommit } from '../../src/produce/group-commit.ts';
import { Counters } from '../../src/upkeep/counters.ts';
import { leaveBehind, rowOf } from '../fixtures/left-behind.ts';
import { newEnv, RunningBus, workload } from '../fixtures/running-bus.ts';

vi.setConfig({ testTimeout: 30_000, hookTimeout: 60_000 });

const migrate = (pool: PostgresPool, name: string) =>
  pool.raw.unsafe(readFileSync(new URL(`../../migrations/${name}.sql`, import.meta.url), 'utf8'));

describe('a group as text', () => {
  test('comes back as it was, what all rows share and what one of them has alone', () => {
    const [env, other] = [newEnv(), newEnv()];
    const token = rowOf(env, 2);
    const rows = [rowOf(env, 1), { ...token, envelope: { ...token.envelope, publisher_id_token: 'idt' } }, rowOf(other, 3)];
    const text = InboxGroup.write(rows);
    expect(InboxGroup.read(text)).toEqual(rows);
    expect(text.match(/platform:shop:order:created/g)).toHaveLength(1);
    expect(InboxGroup.read(InboxGroup.write(rows.slice(0, 1)))).toEqual(rows.slice(0, 1));
  });

  test('what is open are the new rows without an entry, in their order', () => {
    const rows = [1, 2, 3, 4].map(n => rowOf('e', n));
    const group = new InboxGroup({ id: 'g', attempt: 1, rows, positions: [0, 2, 3], messageIds: ['', '', '5-0'] });
    expect(group.open).toEqual([0, 3]);
    group.messageIds[0] = '6-0';
    expect(group.open).toEqual([3]);
    expect(group.relayed(3).envelope.inbox_id).toBe(rows[3]?.id);
  });

  test('environment, subject and key make one key, and none of them can be mistaken for another', () => {
    const key = (env: string, publisher_subject: string, idempotency_key: string) =>
      keyOf({ env, envelope: { publisher_subject, idempotency_key } });
    expect(key('e', 's', 'k')).toMatch(/^[0-9a-f]{32}$/);
    expect(new Set([key('e', 's', 'k'), key('f', 's', 'k'), key('e', 't', 'k'), key('e', 's', 'l'), key('es', '', 'k')]).size).toBe(5);
  });
});

test('the journal says once what is to be said of several messages in a row, and a line of the log names a message that is alone by its id', () => {
  const notes = new Notes();
  const row = rowOf('e', 1);
  notes.published(row, '1-0', 'accepted');
  notes.published(row, '1-1', 'accepted');
  notes.published(row, '1-0', 'duplicate');
  notes.published({ ...row, family: 'other' }, '2-0', 'duplicate');
  const { journal } = notes.take();
  const entry = {
    at: row.envelope.produced_at,
    action: 'produce',
    sub: 'shop',
    env_id: 'e',
    stream_family: 'app',
    event_type: 'platform:shop:order:created',
    correlation_id: 'c',
  };
  expect(journal).toEqual([
    { ...entry, outcome: 'accepted', message_ids: ['1-0', '1-1'] },
    { ...entry, outcome: 'duplicate', message_ids: ['1-0'] },
    { ...entry, outcome: 'duplicate', message_ids: ['2-0'], stream_family: 'other' },
  ]);
  expect(journal.slice(0, 2).map(lineOf)).toEqual([
    { ...entry, outcome: 'accepted', message_ids: ['1-0', '1-1'] },
    { ...entry, outcome: 'duplicate', message_id: '1-0' },
  ]);
  expect(notes.empty).toBe(true);
});

test('what is noted without a database is bounded by messages: the oldest go', () => {
  const notes = new Notes();
  const row = rowOf('e', 1);
  const of = (correlation_id: string) => ({ ...row, envelope: { ...row.envelope, correlation_id } });
  for (let n = 0; n < 30_000; n++) notes.published(of('first'), `1-${n}`, 'accepted');
  const taken = notes.take();
  for (let n = 0; n < 30_000; n++) notes.published(of('second'), `2-${n}`, 'accepted');
  notes.putBack(taken);
  expect(notes.take().journal.map(({ correlation_id, message_ids }) => [correlation_id, message_ids.length])).toEqual([['second', 30_000]]);
});

describe('with its tables', () => {
  let stores: TestStores;
  const pools: PostgresPool[] = [];
  beforeAll(async () => {
    stores = await openTestStores();
  });
  afterAll(async () => {
    for (const pool of pools) await pool.close(0);
    await stores[Symbol.asyncDispose]();
  });
  /** Tables of the bus, in a schema of their own. */
  const tablesOf = async (service: string, migrations = ['0001_inbox', '0002_schedule', '0003_inbox_groups', '0004_minted_keys']) => {
    await stores.stores.ensureService(service);
    const pool = await servicePool(stores, service);
    pools.push(pool);
    for (const name of migrations) await migrate(pool, name);
    return pool;
  };

  test('events that were accepted one by one are kept in groups: keys, entries and journal stay, and what was on no stream is appended', async () => {
    const pool = await tablesOf('old', ['0001_inbox', '0002_schedule']);
    const env = newEnv();
    const insert = (n: number, message_id: string | null) => pool.raw`
      insert into event_inbox (id, env_id, sub, idempotency_key, event_type, stream_family, payload, created_at, produced_at, produced_by,
        correlation_id, append_by, message_id, relayed_at)
      values (uuidv7(), ${env}, 'shop', ${`left-${n}`}, 'platform:shop:order:created', 'app', ${JSON.stringify({ n })},
        '2026-01-01T00:00:00.000Z', '2026-01-01T00:00:00.123Z', 'shop', 'c', now(),
        ${message_id}, ${message_id === null ? null : '2026-01-01T00:00:01Z'})`;
    await insert(1, '5-0');
    await insert(2, null);
    await pool.raw`insert into audit_journal (at, action, sub, env_id, stream_family, event_type, message_id, outcome, correlation_id)
      values (now(), 'produce', 'shop', ${env}, 'app', 'a:b:c:d', '5-0', 'accepted', 'c')`;
    await migrate(pool, '0003_inbox_groups');
    await migrate(pool, '0004_minted_keys');
    expect(await pool.raw`select idempotency_key, message_id from event_inbox order by id`).toEqual([
      { idempotency_key: 'left-1', message_id: '5-0' },
      { idempotency_key: 'left-2', message_id: null },
    ]);
    expect(await pool.raw`select message_id, outcome from audit_journal`).toEqual([{ message_id: '5-0', outcome: 'accepted' }]);
    const groups = await pool.raw<{ events: string }[]>`select events from event_groups order by id`;
    const rows = groups.flatMap(({ events }) => InboxGroup.read(events));
    expect(rows.map(row => row.envelope)).toEqual(
      [1, 2].map(n => ({ ...rowOf(env, n).envelope, produced_at: '2026-01-01T00:00:00.123Z' })),
    );
    const keys = await pool.raw<{ key: string }[]>`select replace(key::text, '-', '') as key from event_keys`;
    expect(new Set(keys.map(({ key }) => key))).toEqual(new Set(rows.map(keyOf)));
  });

  test('a group that somebody has in hand at the moment is waited for: those behind it are not appended before it', async () => {
    const pool = await tablesOf('waits');
    await leaveBehind(pool, newEnv(), 2, { perGroup: 1 });
    const inbox = new Inbox({ db: { sql: pool.raw }, platform: { newId } } as never);
    const leased = await pool.tx(async sql => {
      await sql`select 1 from event_groups order by id limit 1 for update`;
      const lease = inbox.lease(10);
      await eventually(async () => (await pool.raw`select 1 from pg_locks where not granted`).length).toBeGreaterThan(0);
      // In a list of its own, or the transaction would wait for it.
      return [lease];
    });
    expect((await leased[0])?.flatMap(({ rows }) => rows.map(({ envelope }) => envelope.payload))).toEqual(['{"n":1}', '{"n":2}']);
  });

  test('pages of the journal go after ninety days, and no sooner', async () => {
    const pool = await tablesOf('swept');
    await pool.raw`insert into audit_pages (at, entries) select now() - days * interval '1 day', '[]' from unnest(${[89, 91]}::int[]) days`;
    const inbox = new Inbox({ db: { sql: pool.raw }, platform: { newId } } as never);
    expect([await inbox.sweep(), await inbox.sweep(), (await pool.raw`select 1 from audit_pages`).length]).toEqual([1, 0, 1]);
  });

  test('F-15 what was under way when a store died is appended anew: its entries there count for nothing, nor does what its appender says later', async () => {
    const pool = await tablesOf('fenced');
    await leaveBehind(pool, newEnv(), 3, { perGroup: 1 });
    const inbox = new Inbox({ db: { sql: pool.raw }, platform: { newId } } as never);
    const [partly, late, done] = (await inbox.lease(10)) as [InboxGroup, InboxGroup, InboxGroup];
    for (const group of [partly, late, done]) group.messageIds[0] = '1-0';
    await inbox.commit([], [], [done]);
    await inbox.release([partly], { afterMs: 3_600_000 });
    await inbox.fenceUnmarked();
    await inbox.commit([], [], [late]);
    const again = await inbox.lease(10);
    expect(again.map(({ id, open }) => ({ id, open }))).toEqual([partly, late].map(({ id }) => ({ id, open: [0] })));
    expect(await pool.raw`select message_ids from event_groups where done_at is not null`).toEqual([{ message_ids: ['1-0'] }]);
  });

  test('of a group that reached only some of its streams, the others are appended later, and none twice', async () => {
    await using bus = await RunningBus.start(stores);
    const [broken, whole] = [newEnv(), newEnv()];
    const shop = workload('shop');
    await bus.store.client.set(`bus:{${broken}}:app`, 'no stream');
    const event = (env: string, n: number) => ({
      event_type: 'platform:shop:order:created',
      env_id: env,
      stream_family: 'app',
      payload: { n },
      idempotency_key: `k-${n}`,
    });
    const batch = async () =>
      (
        (await bus.call('produceBatch', shop, { body: { events: [event(whole, 1), event(broken, 2), event(whole, 3)] } })).value as {
          results: { message_id?: string; error?: string }[];
        }
      ).results;
    const first = await batch();
    expect(first.map(({ error }) => error ?? 'ok')).toEqual(['ok', 'append_failed', 'ok']);
    // The relay, which was told of it, has tried as well; it does not try again before its next poll.
    await eventually(() => bus.host.logged.some(({ msg }) => msg === 'rows are not appended yet')).toBe(true);
    await bus.store.client.del(`bus:{${broken}}:app`);
    // The same request again takes the group over: what is there keeps its entry, what is not is appended.
    const second = await batch();
    expect(second.map(({ message_id }) => message_id)).toEqual([first[0]?.message_id, expect.any(String), first[2]?.message_id]);
    // What was appended is noted in the inbox a moment after the answer; only then may the clock leap over a lease.
    await expect
      .poll(async () => ((await bus.call('metrics', shop)).value as { inbox_unrelayed: number }).inbox_unrelayed, { timeout: 10_000 })
      .toBe(0);
    await bus.clock.advance('2s');
    expect([await bus.store.client.xlen(`bus:{${whole}}:app`), await bus.store.client.xlen(`bus:{${broken}}:app`)]).toEqual([2, 1]);
  });

  test('what is noted is written when the commit is closed, not when its wait is over: otherwise the next process appends it again', async () => {
    const pool = await tablesOf('closing');
    const env = newEnv();
    const ctx = { db: { sql: pool.raw }, platform: { newId }, log: { info: () => undefined, warn: () => undefined } } as never;
    const appender = { append: async (rows: readonly unknown[]) => rows.map((_, index) => `1-${index}`) } as never;
    const marked = async () => (await pool.raw`select 1 from event_inbox where env_id = ${env} and message_id is not null`).length;
    const commit = new GroupCommit(ctx, new Inbox(ctx), appender, new Counters());
    vi.useFakeTimers({ toFake: ['setTimeout'] });
    try {
      await commit.submit([rowOf(env, 1), rowOf(env, 2)]);
      expect(await marked()).toBe(0);
      await commit[Symbol.asyncDispose]();
      expect(await marked()).toBe(2);
    } finally {
      vi.useRealTimers();
    }
  });
});
