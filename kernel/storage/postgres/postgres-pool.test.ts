import { isUnavailable } from '@platform/sdk';
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest';
import { eventually } from '../fixtures/eventually.ts';
import { TestCluster } from '../fixtures/test-cluster.ts';
import { PostgresPool } from './postgres-pool.ts';
import { ensureServiceSchema, printRoles } from '../schema/service-schema.ts';

vi.setConfig({ testTimeout: 30_000, hookTimeout: 60_000 });

let cluster: TestCluster;
let billing: PostgresPool;
let orders: PostgresPool;
beforeAll(async () => {
  cluster = await TestCluster.start();
  billing = await cluster.pool('billing');
  orders = await cluster.pool('orders');
  await billing.raw`create table invoice (id int primary key, amount bigint, data jsonb, at timestamptz, tags text[])`;
});
afterAll(() => cluster[Symbol.asyncDispose]());

describe('services are apart', () => {
  test('a service works in its own schema without naming it', async () => {
    expect(await billing.sql`select current_user as me, current_schema() as home, to_regclass('invoice')::text as found`).toEqual([
      { me: 'platform_billing', home: 'billing', found: 'invoice' },
    ]);
  });

  test('it can read, write and even look into no other', async () => {
    await expect(orders.sql`select * from billing.invoice`).rejects.toMatchObject({ code: '42501' });
    await expect(orders.sql`insert into billing.invoice (id) values (1)`).rejects.toMatchObject({ code: '42501' });
    await expect(orders.sql`create table billing.mine (id int)`).rejects.toMatchObject({ code: '42501' });
  });

  test('it cannot become another, make roles, schemas or temporary tables, or use the public schema', async () => {
    await expect(orders.sql`set role platform_billing`).rejects.toMatchObject({ code: '42501' });
    await expect(orders.sql`create role friend`).rejects.toMatchObject({ code: '42501' });
    await expect(orders.sql`create schema more`).rejects.toMatchObject({ code: '42501' });
    await expect(orders.sql`create temporary table t (id int)`).rejects.toMatchObject({ code: '42501' });
    await expect(orders.sql`create table public.t (id int)`).rejects.toMatchObject({ code: '42501' });
    await expect(orders.sql`alter role platform_orders superuser`).rejects.toMatchObject({ code: '42501' });
    await expect(orders.sql`select pg_read_file('/etc/passwd')`).rejects.toMatchObject({ code: '42501' });
  });

  test('making a service is idempotent and safe at the same time', async () => {
    await Promise.all(Array.from({ length: 8 }, (_, i) => ensureServiceSchema(cluster.postgres.admin(), `twin${i % 2}`)));
    expect(await cluster.postgres.admin()`select nspname from pg_namespace where nspname like 'twin%' order by 1`).toEqual([
      { nspname: 'twin0' },
      { nspname: 'twin1' },
    ]);
    await expect(ensureServiceSchema(cluster.postgres.admin(), 'x"; drop schema billing')).rejects.toMatchObject({ code: 'service_name' });
    await expect(ensureServiceSchema(cluster.postgres.admin(), 'public')).rejects.toMatchObject({ code: 'service_name' });
  });

  test('the printed statements make the same on a server where one login sets roles', async () => {
    const admin = cluster.postgres.admin();
    await admin.unsafe('create database managed');
    await admin.unsafe('create role login_for_all login noinherit');
    const [{ socket } = {}] = await admin<{ socket: string }[]>`select current_setting('unix_socket_directories') as socket`;
    const postgres = (await import('postgres')).default;
    const managed = postgres({
      path: `${socket}/.s.PGSQL.${cluster.postgres.port}`,
      host: 'localhost',
      user: 'postgres',
      database: 'managed',
    });
    await managed.unsafe(printRoles(['shipping', 'stock'], { login: 'login_for_all', database: 'managed' }));
    // What the login may do, tried as that login: by session authorization, for it has no certificate here.
    await managed.begin(async tx => {
      await tx.unsafe('set local session authorization login_for_all; set local role platform_shipping; create table shipping.t (id int)');
      await expect(tx.savepoint(sp => sp`create table stock.t (id int)`)).rejects.toMatchObject({ code: '42501' });
    });
    await managed.end();
  });

  test('a pool may work as a role its login is a member of', async () => {
    await cluster.postgres.admin()`grant platform_billing to platform_orders`;
    const as = await cluster.pool('orders', { role: 'platform_billing', schema: 'billing' });
    expect(await as.sql`select current_user as me, session_user as login`).toEqual([{ me: 'platform_billing', login: 'platform_orders' }]);
    await as.close();
    await cluster.postgres.admin()`revoke platform_billing from platform_orders`;
  });
});

describe('values', () => {
  test('come out ready for JSON', async () => {
    await billing.sql`insert into invoice ${billing.sql.row({
      id: 1,
      amount: 12,
      data: { a: [1] },
      at: '2026-01-31T10:20:30.120Z',
      tags: ['x', 'y'],
    })}`;
    expect(await billing.sql`select * from invoice where id in ${billing.sql.list([1, 2])}`).toEqual([
      { id: 1, amount: 12, data: { a: [1] }, at: '2026-01-31T10:20:30.120Z', tags: ['x', 'y'] },
    ]);
    expect(
      await billing.sql`select 9007199254740993::bigint as large, date '2026-01-31' as day, timestamptz 'infinity' as never,
        timestamptz '2026-01-31 10:20:30.9999+02' as cut`,
    ).toEqual([{ large: '9007199254740993', day: '2026-01-31', never: 'infinity', cut: '2026-01-31T08:20:30.999Z' }]);
  });

  test('an update takes a row, an empty list matches nothing, a string can be a JSON value', async () => {
    await billing.sql`update invoice set ${billing.sql.row({ amount: 13, at: new Date('2026-02-01T00:00:00Z') })} where id = 1`;
    expect(await billing.sql`select amount, at from invoice`).toEqual([{ amount: 13, at: '2026-02-01T00:00:00.000Z' }]);
    expect(await billing.sql`select 1 from invoice where id in ${billing.sql.list([])}`).toEqual([]);
    await billing.sql`update invoice set data = ${billing.sql.json('text')}`;
    expect(await billing.sql`select data from invoice`).toEqual([{ data: 'text' }]);
  });

  test('are bound, never spliced, and text that is no template is refused', async () => {
    const text = `'; drop table invoice; --`;
    expect(await billing.sql`select ${text}::text as text`).toEqual([{ text }]);
    expect(() => (billing.sql as unknown as (text: string) => unknown)('invoice')).toThrow(TypeError);
  });
});

describe('transactions', () => {
  test('commit with the return and roll back with the throw', async () => {
    expect(await billing.tx(async sql => sql`insert into invoice (id) values (10) returning id`)).toEqual([{ id: 10 }]);
    await expect(
      billing.tx(async sql => {
        await sql`insert into invoice (id) values (11)`;
        throw new Error('no');
      }),
    ).rejects.toThrow('no');
    expect(await billing.sql`select id from invoice where id in (10, 11)`).toEqual([{ id: 10 }]);
  });

  test('that wait without bound are refused recognisably', async () => {
    const narrow = await cluster.pool('billing', { max: 1 });
    const gate = Promise.withResolvers<void>();
    const first = narrow.tx(() => gate.promise);
    const waiting = Array.from({ length: 999 }, () => narrow.tx(async () => 1));
    const error: unknown = await narrow.tx(async () => 1).catch((failure: unknown) => failure);
    expect(isUnavailable(error)).toBe(true);
    gate.resolve();
    await Promise.all([first, ...waiting]);
    await narrow.close();
  });
});

test('a statement that takes too long is ended', async () => {
  const hasty = await cluster.pool('billing', { statementTimeoutMs: 50 });
  await expect(hasty.sql`select pg_sleep(30)`).rejects.toMatchObject({ code: '57014' });
  await hasty.close();
});

test('a lost connection is told as such, and the pool finds back', async () => {
  const pool = await cluster.pool('billing', { max: 1 });
  const [row] = await pool.raw`select pg_backend_pid() as pid`;
  const cut = pool.sql`select pg_sleep(30)`.then(() => 'done', isUnavailable);
  await eventually(
    async () =>
      (await cluster.postgres.admin()`select 1 from pg_stat_activity where pid = ${row?.['pid']} and query like '%pg_sleep%'`).length,
  ).toBe(1);
  await cluster.postgres.admin()`select pg_terminate_backend(${row?.['pid']})`;
  expect(await cut).toBe(true);
  await eventually(() => pool.healthy()).toBe(true);
  await pool.close();
});

test('of statements whose connections are cut again and again every one ends, and what follows is answered at once with its own answer', async () => {
  await using pool = await cluster.pool('billing', { max: 3 });
  for (let cut = 0; cut < 25; cut++) {
    const asked = Array.from({ length: 12 }, (_, n) =>
      pool.raw<{ n: number }[]>`select ${n}::int as n, pg_sleep(0.002)`.then(([row]) => row?.n === n, isUnavailable),
    );
    await cluster.postgres.admin()`select pg_terminate_backend(pid) from pg_stat_activity where usename = 'platform_billing'`;
    expect(await Promise.all(asked)).toEqual(asked.map(() => true));
    await eventually(() => pool.healthy()).toBe(true);
  }
});

describe.each(['in the middle of a statement', 'between two'])('a transaction whose connection is cut %s', where => {
  test('fails, whatever it goes on to ask, and writes nothing on what is gone', async () => {
    await using pool = await cluster.pool('billing', { max: 2 });
    for (let cut = 0; cut < 10; cut++) {
      const [begun, go] = [Promise.withResolvers<number>(), Promise.withResolvers<void>()];
      const work = pool.tx(async sql => {
        const [row] = await sql<{ pid: number }[]>`select pg_backend_pid() as pid`;
        begun.resolve((row as { pid: number }).pid);
        if (where === 'between two') await go.promise;
        else await sql`select pg_sleep(30)`.catch(() => undefined);
        // As code does that clears up after itself.
        await sql`select 1`;
      });
      const failed = work.then(() => false, isUnavailable);
      const pid = await begun.promise;
      await cluster.postgres.admin()`select pg_terminate_backend(${pid})`;
      await eventually(async () => (await cluster.postgres.admin()`select 1 from pg_stat_activity where pid = ${pid}`).length).toBe(0);
      if (where === 'between two') await eventually(() => pool.healthy()).toBe(true);
      go.resolve();
      expect(await failed).toBe(true);
      await eventually(() => pool.healthy()).toBe(true);
    }
  });
});

test('a server that is away makes statements fail at once and recognisably, and is not healthy', async () => {
  const away = new PostgresPool({ host: '127.0.0.1', port: 1, database: 'platform', user: 'x', schema: 'x' });
  const error: unknown = await away.sql`select 1`.catch((failure: unknown) => failure);
  expect(isUnavailable(error)).toBe(true);
  expect(await away.healthy()).toBe(false);
  await away.close(0);
  expect(isUnavailable(new Error('no such row'))).toBe(false);
  expect(isUnavailable(Object.assign(new Error('duplicate'), { code: '23505' }))).toBe(false);
});

test('notifications arrive, also after the listening connection was cut', async () => {
  let heard = 0;
  let inForce = 0;
  const subscription = await billing.listen(
    'billing_outbox',
    () => heard++,
    () => inForce++,
  );
  await billing.sql`select pg_notify('billing_outbox', '')`;
  await eventually(() => heard).toBe(1);
  await cluster.postgres.admin()`select pg_terminate_backend(pid) from pg_stat_activity where query ilike 'listen%'`;
  await eventually(() => inForce).toBe(2);
  await billing.sql`select pg_notify('billing_outbox', '')`;
  await eventually(() => heard).toBe(2);
  await subscription[Symbol.asyncDispose]();
});

test('a renewed certificate is used by the next connection', async () => {
  const [first, second] = [await cluster.authority.leaf('svc.billing'), await cluster.authority.leaf('svc.billing')];
  let current = first;
  const pool = await cluster.pool('billing', { max: 1, ssl: () => current });
  const serial = async (): Promise<string> => {
    const [row] =
      await pool.raw`select client_serial::text as serial, pg_backend_pid() as pid from pg_stat_ssl where pid = pg_backend_pid()`;
    return BigInt(String(row?.['serial'])).toString(16).toUpperCase();
  };
  expect(BigInt(`0x${await serial()}`)).toBe(BigInt(`0x${first.serial}`));
  current = second;
  await cluster.postgres.admin()`select pg_terminate_backend(pid) from pg_stat_ssl
    where client_serial = ${BigInt(`0x${first.serial}`).toString()}::numeric`;
  await eventually(() =>
    serial().then(
      text => BigInt(`0x${text}`),
      () => 0n,
    ),
  ).toBe(BigInt(`0x${second.serial}`));
  await pool.close();
});
