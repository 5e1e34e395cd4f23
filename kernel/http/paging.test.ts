import { as, boot, type BootedHost } from '@platform/testing';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { newId } from '../base/ids.ts';
import { type probe, probePlugin } from '../test/probe.ts';
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
  page(sql, query, { ...spec, ...more }, ({ where, order, limit }) => sql<Row[]>`select * from shelf s where ${where} order by ${order} limit ${limit}`);
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
  const strange = ['nonsense', '', encode(['shelf']), encode(['shelf', 'yesterday', newId()]), encode(['shelf', '2026-01-01T00:00:00.000Z', "x' or 1=1"]), encode({}), encode(['shelf', null, null])];
  for (const text of [...strange, 'käse']) await expect(read({ cursor: text }), text).rejects.toMatchObject({ status: 400, code: 'invalid_cursor' });
  await expect(read({ cursor: cursor as string }, { list: 'another' })).rejects.toMatchObject({ code: 'invalid_cursor' });
  expect((await read({ cursor: cursor as string })).items).toHaveLength(4);
});

test('an order that names no column is a fault of the code, not of the request', async () => {
  await expect(read({}, { order: { 'at; drop table shelf': 'time' } })).rejects.toThrow('which is no column');
  expect((await host.fetch('/v1/things', { persona: as.user('probe:things:read') })).status).toBe(200);
});
