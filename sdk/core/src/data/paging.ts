/** How a member of a listing's order is written in a cursor. */
export type OrderKind = 'time' | 'id' | 'text' | 'number';

export interface PageSpec {
  /** Names the listing and what it is filtered by: a cursor of another one is 400 `invalid_cursor`. */
  readonly list: string;
  /**
   * Columns in the order of the listing; together they name a row, and none is null. A prefix such as `o.` counts for the statement alone:
   * the row's member is what follows it.
   */
  readonly order: Readonly<Record<string, OrderKind>>;
  /** Newest first unless it says so (G-K-04). */
  readonly ascending?: boolean;
}

/** One page as its reader needs it: conditions for a statement, and the same as values. */
export interface PagePart {
  /** A condition that holds for rows behind the cursor; true on the first page. */
  readonly where: unknown;
  /** Columns with their direction, for `order by`. */
  readonly order: unknown;
  /** One more than the page shows: whether it comes says whether there is another page. */
  readonly limit: number;
  /** The last row of the page before, in the order's members; none on the first page. */
  readonly after: readonly (string | number)[] | undefined;
}

/**
 * What a listing's reader found behind the cursor: rows, one more than the page shows where there are more. A reader that stopped looking
 * before says from which members of the order the next page goes on.
 */
export type PageRows<Row> = readonly Row[] | { readonly items: readonly Row[]; readonly next: object | undefined };

/**
 * The order of a listing that can be sorted (`SortQuery`): as the query asks, `asc` where it names no direction, and otherwise as it is.
 * `by` has the column and kind of each member; none of the columns is null. A cursor of one order is none of another.
 */
export function sorted(
  spec: PageSpec,
  { sort, order = 'asc' }: { readonly sort?: string | undefined; readonly order?: 'asc' | 'desc' | undefined },
  by: Readonly<Record<string, readonly [column: string, kind: OrderKind]>>,
): PageSpec {
  const asked = sort === undefined ? undefined : by[sort];
  const tie = Object.entries(spec.order).at(-1);
  if (!asked || !tie) return spec;
  return { list: `${spec.list} ${sort} ${order}`, order: Object.fromEntries([asked, tie]), ascending: order === 'asc' };
}
