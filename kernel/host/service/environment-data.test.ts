import type { registry } from '@platform/registry/contract';
import { as, boot, type BootedHost } from '@platform/testing';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { lending } from '../../../e2e/verticals/lending/contract/index.ts';
import plugin from '../../../e2e/verticals/lending/src/plugin.ts';
import { newId } from '../../base/ids.ts';
import type { PostgresPool } from '../../storage/postgres/postgres-pool.ts';
import { secureRows } from '../../storage/schema/row-security.ts';
import { Transactions } from '../context/transactions.ts';

let host: BootedHost<typeof lending>;
beforeAll(async () => {
  host = await boot<typeof lending, { registry: typeof registry }>(plugin, {});
});
afterAll(() => host?.[Symbol.asyncDispose]());

const sys = as.machine('sys');
const ask = (what: string, env_ids: readonly string[], persona = sys) =>
  host.fetch(`/v1/internal/environments/${what}`, { method: 'POST', persona, body: JSON.stringify({ env_ids }) });

test('F-56 a service says what it holds of an environment, and all of it goes when asked, and nothing of another', async () => {
  const [kept, gone] = [newId(), newId()];
  const sql = await host.sql();
  await sql`insert into loans (loan_id, env_id, applicant, amount_minor) select gen_random_uuid(), env_id::uuid, 'Grace', 5
    from unnest(${[kept, ...Array.from({ length: 12_000 }, () => gone)]}::text[]) env_id`;
  expect((await ask('counts', [gone])).json).toEqual({ counts: { loans: 12_000 } });
  expect(await ask('purge', [gone])).toMatchObject({ status: 200, json: { counts: { loans: 12_000 } } });
  expect(await ask('purge', [gone])).toMatchObject({ status: 200, json: { counts: {} } });
  expect((await ask('counts', [kept, gone])).json).toEqual({ counts: { loans: 1 } });
});

test('nobody but a service of the platform asks, and no environment is not all of them', async () => {
  const env = newId();
  expect(await ask('purge', [env], { ...as.machine('shop'), vertical: 'acme' })).toMatchObject({ status: 403 });
  expect(await ask('purge', [env], as.user('lending:read', 'sys:sys:admin'))).toMatchObject({ status: 403 });
  expect((await host.fetch('/v1/internal/environments/purge', { method: 'POST', body: '{}' })).status).toBe(401);
  expect(await ask('purge', [])).toMatchObject({ status: 400, json: { code: 'validation_failed' } });
});

describe('tables under row security', () => {
  const loan = (env_id: string) => ({ loan_id: newId(), env_id, applicant: 'Grace', amount_minor: 5 });
  let pool: PostgresPool;
  beforeAll(async () => {
    pool = (await host.pool()).sibling({ everyEnvironment: false });
  });
  afterAll(() => pool?.close());
  /** The transactions of the plugin. */
  const rowsOf = () => new Transactions({ manifest: host.manifest, pool, clock: host.clock, keys: {} });

  test('F-45 a statement that forgot its condition sees and changes the rows of its environment alone', async () => {
    const [mine, theirs] = [newId(), newId()];
    const rows = rowsOf();
    for (const env of [mine, theirs]) await rows.of(env).tx(({ sql }) => sql`insert into loans ${sql.row(loan(env))}`);
    const all = () =>
      rows
        .ofAll()
        .read(
          sql =>
            sql<{ env_id: string; state: string }[]>`select env_id, state from loans where env_id in (${mine}, ${theirs}) order by loan_id`,
        );
    expect(await rows.of(mine).read(sql => sql`select env_id from loans`)).toEqual([{ env_id: mine }]);
    await rows.of(mine).tx(({ sql }) => sql`update loans set state = 'frozen'`);
    expect(await all()).toEqual([
      { env_id: mine, state: 'frozen' },
      { env_id: theirs, state: 'applied' },
    ]);
    await rows.of(mine).tx(({ sql }) => sql`delete from loans`);
    expect(await all()).toEqual([{ env_id: theirs, state: 'applied' }]);
  });

  test('a row of another environment cannot be written, and a transaction that names none fails in words', async () => {
    const rows = rowsOf();
    await expect(rows.of(newId()).tx(({ sql }) => sql`insert into loans ${sql.row(loan(newId()))}`)).rejects.toThrow(/row-level security/);
    const nameless = { message: 'this statement names no environment', hint: 'ask through db.of(envId), or db.ofAll()' };
    await expect(rows.tx(({ sql }) => sql`select 1 from loans`)).rejects.toMatchObject(nameless);
    // A connection that was told once forgets it with its transaction.
    await Promise.all(Array.from({ length: 12 }, () => rows.of(newId()).read(sql => sql`select 1 from loans`)));
    await expect(Promise.any(Array.from({ length: 12 }, () => pool.sql`select 1 from loans`))).rejects.toMatchObject({
      errors: Array.from({ length: 12 }, () => expect.objectContaining(nameless)),
    });
  });

  test('a table that is listed no more is let go, and one that is not there is refused', async () => {
    await secureRows(pool, []);
    try {
      expect(await pool.sql`select 1 as one from loans where false`).toEqual([]);
      await pool.sql`select 1 from loans`;
    } finally {
      await secureRows(pool, ['loans']);
    }
    await expect(secureRows(pool, ['loans', 'lones'])).rejects.toThrow('rowSecurity names lones: no migration makes such a table');
  });

  test('F-45 an event that a test delivers is handled once, in its environment, and a handler that throws fails the delivery', async () => {
    const [archived, other, id] = [newId(), newId(), newId()];
    const rows = rowsOf();
    for (const env of [archived, other]) await rows.of(env).tx(({ sql }) => sql`insert into loans ${sql.row(loan(env))}`);
    const states = () =>
      rows.ofAll().read(sql => sql`select env_id, state from loans where env_id in (${archived}, ${other}) order by loan_id`);
    await host.deliver('platform:sys:env:archived', archived, { org_id: newId() }, { id });
    const after = [
      { env_id: archived, state: 'frozen' },
      { env_id: other, state: 'applied' },
    ];
    expect(await states()).toEqual(after);
    await rows.of(archived).tx(({ sql }) => sql`insert into loans ${sql.row(loan(archived))}`);
    await host.deliver('platform:sys:env:archived', archived, { org_id: newId() }, { id });
    expect(await rows.of(archived).read(sql => sql`select state from loans order by loan_id`)).toEqual([
      { state: 'frozen' },
      { state: 'applied' },
    ]);
    await expect(host.deliver('platform:sys:env:archived', 'no environment', {})).rejects.toThrow(/invalid input syntax for type uuid/);
    await expect(host.deliver('platform:sys:env:deleted', archived, {})).rejects.toThrow(
      'lending does not consume platform:sys:env:deleted; it consumes platform:sys:env:archived',
    );
  });
});
