import { afterAll, beforeAll, beforeEach, describe, expect, test, vi } from 'vitest';
import { eventually } from '../storage/fixtures/eventually.ts';
import { newId } from '../base/ids.ts';
import { TestCluster } from '../storage/fixtures/test-cluster.ts';
import { migrate } from '../storage/schema/migrations.ts';
import type { PostgresPool } from '../storage/postgres/postgres-pool.ts';
import { once } from './consumption/inbox.ts';
import { announced, drop, insertEvent, insertEvents, type OutboxEvent, release } from './outbox.ts';
import { OUTBOX_MIGRATIONS } from './outbox-schema.ts';

vi.setConfig({ testTimeout: 30_000, hookTimeout: 60_000 });

let cluster: TestCluster;
let pool: PostgresPool;
beforeAll(async () => {
  cluster = await TestCluster.start();
  pool = await cluster.pool('shop');
  await migrate({ sql: pool, service: 'shop', builtins: OUTBOX_MIGRATIONS });
  await pool.raw`create table orders (id int primary key)`;
});
afterAll(() => cluster[Symbol.asyncDispose]());
beforeEach(async () => {
  await pool.raw`truncate outbox, inbox, orders`;
});

const event = (changes: Partial<OutboxEvent> = {}): OutboxEvent => ({
  id: newId(),
  env_id: newId(),
  event_type: 'platform:shop:order:created',
  stream_family: 'app',
  payload: { name: 'a' },
  correlation_id: 'c-1',
  publisher_subject: 'm2m-shop',
  ...changes,
});

test('KRN-008 the event is written in the transaction of the change: both are there, or neither', async () => {
  const written = event();
  await pool.tx(async sql => {
    await sql`insert into orders (id) values (1)`;
    await insertEvent(sql, written);
    // Nobody else sees either of them before the commit.
    expect(await pool.sql`select (select count(*) from orders) as orders, (select count(*) from outbox) as events`).toEqual([
      { orders: 0, events: 0 },
    ]);
  });
  await expect(
    pool.tx(async sql => {
      await sql`insert into orders (id) values (2)`;
      await insertEvent(sql, event());
      throw new Error('the change is refused');
    }),
  ).rejects.toThrow('the change is refused');
  await expect(
    pool.tx(async sql => {
      await insertEvent(sql, event());
      await sql`insert into orders (id) values (1)`;
    }),
  ).rejects.toMatchObject({ code: '23505' });
  expect(await pool.sql`select id from orders`).toEqual([{ id: 1 }]);
  expect(
    await pool.sql`select id, env_id, event_type, stream_family, payload, correlation_id, publisher_subject, publisher_id_token, hold,
      relayed, parked, attempts from outbox`,
  ).toEqual([{ ...written, publisher_id_token: null, hold: null, relayed: false, parked: false, attempts: 0 }]);
});

test('a service cannot write into the outbox of another', async () => {
  const other = await cluster.pool('other');
  await expect(other.sql`insert into shop.outbox (id) values (${newId()})`).rejects.toMatchObject({ code: '42501' });
});

test('many events of one transaction keep their order and wake the relay once, with the name of their environment; held ones do not wake it', async () => {
  const woken: string[] = [];
  const subscription = await pool.listen('shop_outbox', envId => woken.push(envId));
  const env_id = newId();
  await pool.tx(async sql => {
    await insertEvents(
      sql,
      Array.from({ length: 250 }, (_, n) => event({ env_id, payload: { n } })),
    );
    await insertEvent(sql, event({ env_id, payload: { n: 250 } }));
  });
  await pool.tx(sql => insertEvent(sql, event({ hold: 'h' })));
  await pool.raw`select pg_notify('shop_outbox', 'end')`;
  await eventually(() => woken).toEqual([env_id, 'end']);
  const rows = await pool.sql<{ payload: { n: number } }[]>`select payload from outbox where hold is null order by created_at, id`;
  expect(rows.map(({ payload }) => payload.n)).toEqual(Array.from({ length: 251 }, (_, n) => n));
  await subscription[Symbol.asyncDispose]();
});

test('a transaction that touches some environments calls for each, and one that touches many calls for none by name', async () => {
  const woken: string[] = [];
  const subscription = await pool.listen('shop_outbox', envId => woken.push(envId));
  const some = Array.from({ length: 3 }, () => newId());
  await pool.tx(sql =>
    insertEvents(
      sql,
      [...some, ...some].map(env_id => event({ env_id })),
    ),
  );
  await pool.tx(sql =>
    insertEvents(
      sql,
      Array.from({ length: 9 }, () => event({ env_id: newId() })),
    ),
  );
  await eventually(() => woken).toHaveLength(4);
  expect(woken.slice(0, 3).toSorted()).toEqual(some.toSorted());
  expect(woken[3]).toBe('');
  await subscription[Symbol.asyncDispose]();
});

test('events of a single statement are written where it says so, and wake the relay as those of a transaction', async () => {
  const woken: string[] = [];
  const subscription = await pool.listen('shop_outbox', envId => woken.push(envId));
  const write = (events: OutboxEvent[], where: boolean) => pool.sql`with ${announced(pool.sql, events, pool.sql`${where}`)} select 1`;
  const [one, other] = [newId(), newId()];
  await write([event({ env_id: one }), event({ env_id: one }), event({ env_id: other })], true);
  await write([event()], false);
  await write([event({ hold: 'h' })], true);
  await write(
    Array.from({ length: 9 }, () => event({ env_id: newId() })),
    true,
  );
  await pool.raw`select pg_notify('shop_outbox', 'end')`;
  await eventually(() => woken.at(-1)).toBe('end');
  expect(woken.toSorted()).toEqual(['', one, other, 'end'].toSorted());
  const [row] = await pool.raw`select count(*) as written, count(*) filter (where hold is null) as seen from outbox`;
  expect(row).toEqual({ written: 13, seen: 12 });
  await subscription[Symbol.asyncDispose]();
});

test('the same event twice is an error, not a second event', async () => {
  const twice = event();
  await pool.tx(sql => insertEvent(sql, twice));
  await expect(pool.tx(sql => insertEvent(sql, twice))).rejects.toMatchObject({ code: '23505' });
});

test('release shows what was held, drop forgets it, and neither touches other holds', async () => {
  await pool.tx(sql => insertEvents(sql, [event({ hold: 'a' }), event({ hold: 'a' }), event({ hold: 'b' }), event({ hold: 'c' })]));
  let woken = 0;
  const subscription = await pool.listen('shop_outbox', () => woken++);
  expect(await pool.tx(sql => release(sql, 'a'))).toBe(2);
  expect(await pool.tx(sql => drop(sql, 'b'))).toBe(1);
  expect(await pool.tx(sql => release(sql, 'unknown'))).toBe(0);
  expect(await pool.sql`select hold, count(*) from outbox group by hold order by hold nulls first`).toEqual([
    { hold: null, count: 2 },
    { hold: 'c', count: 1 },
  ]);
  await eventually(() => woken).toBe(1);
  await subscription[Symbol.asyncDispose]();
});

describe('the inbox', () => {
  test('lets a consumer act once per key, and each consumer for itself', async () => {
    expect(await pool.tx(sql => once(sql, 'mailer', 'k'))).toBe(true);
    expect(await pool.tx(sql => once(sql, 'mailer', 'k'))).toBe(false);
    expect(await pool.tx(sql => once(sql, 'auditor', 'k'))).toBe(true);
  });

  test('forgets the mark when the handler rolls back', async () => {
    await expect(
      pool.tx(async sql => {
        await once(sql, 'mailer', 'k');
        throw new Error('mail server is down');
      }),
    ).rejects.toThrow();
    expect(await pool.tx(sql => once(sql, 'mailer', 'k'))).toBe(true);
  });

  test('of two at once, the second learns how the first ended', async () => {
    const gate = Promise.withResolvers<void>();
    const holding = Promise.withResolvers<void>();
    const first = pool.tx(async sql => {
      const mine = await once(sql, 'mailer', 'k');
      holding.resolve();
      await gate.promise;
      return mine;
    });
    await holding.promise;
    const second = pool.tx(sql => once(sql, 'mailer', 'k'));
    await eventually(
      async () => (await cluster.postgres.admin()`select 1 from pg_stat_activity where wait_event_type = 'Lock'`).length,
    ).toBe(1);
    gate.resolve();
    expect(await Promise.all([first, second])).toEqual([true, false]);
  });
});
