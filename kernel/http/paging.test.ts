import { as, boot, type BootedHost } from '@platform/testing';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { newId } from '../base/ids.ts';
import { probePlugin } from '../test/probe.ts';
import type { probe } from '../test/probe-contract.ts';
import type { Sql } from '../storage/schema/sql.ts';
import { page } from './paging.ts';

let host: BootedHost<typeof probe>;
let sql: Sql;
beforeAll(async () => {
  host = await boot<typeof probe, ReturnType<typeof probePlugin>['uses']>(probePlugin());
  sql = await host.sql();
  await sql`create table shelf (at timestamptz(3) not null, shelf_id uuid primary key, place int not null)`;
  for (let n = 0; n < 6; n++) await sql`insert into shelf values (to_timestamp(${1_700_000_000 + Math.floor(n / 3)}), ${newId()}, ${n})`;
});
afterAll(() => host[Symbol.asyncDispose]());

interface Row {
  readonly at: string;
  readonly shelf_id: string;
  readonly place: number;
}
const spec = { list: 'shelf', order: { 's.at': 'time', 's.shelf_id': 'id' } } as const;
const read = (query: { limit?: number; cursor?: string }, more: Partial<Parameters<typeof page>[2]> = {}) =>
  page(
    sql,
    query,
    { ...spec, ...more },
    ({ where, order, limit }) => sql<Row[]>`select * from shelf s where ${where} order by ${order} limit ${limit}`,
  );
async function all(limit: number, more = {}): Promise<number[][]> {
  const pages: number[][] = [];
  for (let cursor: string | null | undefined; cursor !== null && pages.length < 10; ) {
    const answer = await read({ limit, ...(cursor ? { cursor } : {}) }, more);
    pages.push(answer.items.map(({ place }) => place));
    cursor = answer.next_cursor;
  }
  return pages;
}

test('F-15 G-K-04 pages follow one another through rows of one moment, each once; a full last page names no next one', async () => {
  expect(await all(4)).toEqual([
    [5, 4, 3, 2],
    [1, 0],
  ]);
  expect(await all(3)).toEqual([
    [5, 4, 3],
    [2, 1, 0],
  ]);
  expect(await all(6)).toEqual([[5, 4, 3, 2, 1, 0]]);
  expect(await all(4, { ascending: true })).toEqual([
    [0, 1, 2, 3],
    [4, 5],
  ]);
});

test('G-K-04 a cursor is of its list alone, and what is not ours is refused before the database is asked', async () => {
  const { next_cursor: cursor } = await read({ limit: 2 });
  const encode = (value: unknown) => Buffer.from(JSON.stringify(value)).toString('base64url');
  const strange = [
    'nonsense',
    '',
    encode(['shelf']),
    encode(['shelf', 'yesterday', newId()]),
    encode(['shelf', '2026-01-01T00:00:00.000Z', "x' or 1=1"]),
    encode({}),
    encode(['shelf', null, null]),
  ];
  for (const text of [...strange, 'käse'])
    await expect(read({ cursor: text }), text).rejects.toMatchObject({ status: 400, code: 'invalid_cursor' });
  await expect(read({ cursor: cursor as string }, { list: 'another' })).rejects.toMatchObject({ code: 'invalid_cursor' });
  expect((await read({ cursor: cursor as string })).items).toHaveLength(4);
});

test('an order that names no column is a fault of the code, not of the request', async () => {
  await expect(read({}, { order: { 'at; drop table shelf': 'time' } })).rejects.toThrow('which is no column');
  expect((await host.fetch('/v1/things', { persona: as.user('probe:things:read') })).status).toBe(200);
});

test('F-15 each value of a cursor is of the kind of its column, and nothing near it', async () => {
  const encode = (...values: unknown[]) => Buffer.from(JSON.stringify(['shelf', ...values])).toString('base64url');
  const order = { at: 'time', shelf_id: 'id', name: 'text', place: 'number' } as const;
  const ask = (...values: unknown[]) =>
    page(sql, { cursor: encode(...values) }, { list: 'shelf', order }, async ({ after }) => (after ? [{ after }] : []));
  const good = ['2026-01-01T00:00:00.000Z', newId(), 'Ada', 7];
  expect((await ask(...good)).items).toEqual([{ after: good }]);
  const wrong: readonly (readonly [number, readonly unknown[]])[] = [
    [
      0,
      [
        '2026-01-01T00:00:00.000+02:00',
        '2026-01-01',
        '2026-13-41T00:00:00.000Z',
        'x2026-01-01T00:00:00.000Z',
        '2026-01-01T00:00:00.000Zx',
        1_767_225_600_000,
      ],
    ],
    [1, [newId().toUpperCase(), `${newId()}0`, `0${newId()}`, newId().slice(1), 7]],
    [2, ['a\u0000b', 7, null]],
    [3, ['7', null, true]],
  ];
  for (const [at, values] of wrong)
    for (const value of values)
      await expect(ask(...good.with(at, value as never)), String(value)).rejects.toMatchObject({ status: 400, code: 'invalid_cursor' });
  // More than a number can be.
  const huge = Buffer.from(JSON.stringify(['shelf', ...good]).replace(/7\]$/, '1e999]')).toString('base64url');
  await expect(page(sql, { cursor: huge }, { list: 'shelf', order }, async () => [])).rejects.toMatchObject({ code: 'invalid_cursor' });
  await expect(ask(...good, 'more')).rejects.toMatchObject({ code: 'invalid_cursor' });
});

test('G-K-04 a page has fifty rows where nothing is asked for, and a row without what it is ordered by is a fault of the code', async () => {
  const limits: number[] = [];
  const rows = Array.from({ length: 51 }, (_, place) => ({ at: '2026-01-01T00:00:00.000Z', shelf_id: newId(), place }));
  const answer = await page(sql, {}, spec, async ({ limit }) => (limits.push(limit), rows));
  expect([limits, answer.items.length, answer.next_cursor === null]).toEqual([[51], 50, false]);
  await expect(page(sql, { limit: 1 }, spec, async () => [{ at: 'now' }, { at: 'then' }])).rejects.toThrow('a row has no such time there');
  for (const order of [{}, { 'S.at': 'time' }, { 's.t.at': 'time' }, { 'x s.at': 'time' }, { 's.at x': 'time' }] as const)
    await expect(page(sql, {}, { list: 'shelf', order: order as never }, async () => [])).rejects.toThrow('which is no column');
});
