import type { OrderKind, PagePart, PageRows, PageSpec } from '@platform/sdk';
import { kernelProblem } from '../base/kernel-problem.ts';
import type { Sql } from '../storage/schema/sql.ts';

type PageQuery = { readonly limit?: number; readonly cursor?: string };

const DEFAULT_LIMIT = 50;
const COLUMN = /^(?:[a-z_][a-z0-9_]*\.)?[a-z_][a-z0-9_]*$/;
const UUID = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/;

const FITS: Readonly<Record<OrderKind, (value: unknown) => boolean>> = {
  time: value => typeof value === 'string' && /^\d{4}-\d\d-\d\dT[\d:.]+Z$/.test(value) && !Number.isNaN(Date.parse(value)),
  id: value => typeof value === 'string' && UUID.test(value),
  text: value => typeof value === 'string' && !value.includes('\0'),
  number: value => typeof value === 'number' && Number.isFinite(value),
};

/**
 * One page of a keyset listing (G-K-04): reads the cursor, asks for one row more than it shows and names the next page. A cursor is opaque
 * and bound to its list; what is not ours is 400 `invalid_cursor`.
 */
export function page<Row extends object>(
  sql: Sql,
  query: PageQuery,
  spec: PageSpec,
  read: (part: PagePart) => PromiseLike<PageRows<Row>>,
): Promise<{ items: Row[]; next_cursor: string | null }> {
  const columns = Object.keys(spec.order);
  const broken = columns.find(column => !COLUMN.test(column));
  const direction = spec.ascending ? 'asc' : 'desc';
  return pageOf(query, spec, async ({ after, limit }) => {
    if (broken !== undefined || columns.length === 0) throw new Error(`${spec.list} orders by ${broken ?? 'nothing'}, which is no column`);
    return read({
      after,
      limit,
      where:
        after === undefined
          ? sql`true`
          : sql`(${literal(sql, columns.join(', '))}) ${literal(sql, spec.ascending ? '>' : '<')} (${list(sql, after)})`,
      order: literal(sql, columns.map(column => `${column} ${direction}`).join(', ')),
    });
  });
}

/** The same of a list that is no table. */
export async function pageOf<Row extends object>(
  query: PageQuery,
  spec: Pick<PageSpec, 'list' | 'order'>,
  read: (part: Pick<PagePart, 'after' | 'limit'>) => PromiseLike<PageRows<Row>>,
): Promise<{ items: Row[]; next_cursor: string | null }> {
  const limit = query.limit ?? DEFAULT_LIMIT;
  const after = query.cursor === undefined ? undefined : valuesIn(query.cursor, spec);
  const rows = await read({ after, limit: limit + 1 });
  if (!isRows(rows)) return { items: [...rows.items], next_cursor: rows.next ? cursorOf(rows.next, spec) : null };
  const items = rows.slice(0, limit);
  const last = items.at(-1);
  return { items, next_cursor: rows.length > limit && last ? cursorOf(last, spec) : null };
}

/** Refuses what has not the form of a cursor, before anybody is asked: no listing takes another one (G-K-04). */
export function requireCursor(cursor: unknown): void {
  if (typeof cursor !== 'string' || membersOf(cursor) === undefined) throw invalidCursor();
}

const isRows = <Row>(rows: PageRows<Row>): rows is readonly Row[] => Array.isArray(rows);

function cursorOf(row: object, { list: name, order }: Pick<PageSpec, 'list' | 'order'>): string {
  const values = Object.entries(order).map(([column, kind]) => {
    const value = (row as Record<string, unknown>)[column.slice(column.indexOf('.') + 1)];
    if (!FITS[kind](value)) throw new Error(`${name} orders by ${column}, and a row has no such ${kind} there`);
    return value;
  });
  return Buffer.from(JSON.stringify([name, ...values])).toString('base64url');
}

function valuesIn(cursor: string, { list: name, order }: Pick<PageSpec, 'list' | 'order'>): (string | number)[] {
  const [of, ...values] = membersOf(cursor) ?? [];
  const kinds = Object.values(order);
  if (of === name && values.length === kinds.length && values.every((value, index) => FITS[kinds[index] as OrderKind](value)))
    return values as (string | number)[];
  throw invalidCursor();
}

/** The list that a cursor is of and the values of its last row, unless it is none. */
function membersOf(cursor: string): unknown[] | undefined {
  try {
    const members: unknown = JSON.parse(Buffer.from(cursor, 'base64url').toString());
    return Array.isArray(members) && typeof members[0] === 'string' ? members : undefined;
  } catch {
    return undefined;
  }
}

const invalidCursor = () =>
  kernelProblem('invalid_cursor', {
    detail: 'Use next_cursor of the page before as it is, with the same filters, or start again without a cursor.',
  });

/** Text of a contract's own, checked before: never a value. */
function literal(sql: Sql, text: string): unknown {
  return sql(Object.assign([text], { raw: [text] }) as unknown as TemplateStringsArray);
}

function list(sql: Sql, values: readonly unknown[]): unknown {
  return values.slice(1).reduce((joined, value) => sql`${joined}, ${value}`, sql`${values[0]}` as unknown);
}
