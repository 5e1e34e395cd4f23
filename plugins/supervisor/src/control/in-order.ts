/** Of addresses and names an operator expects 10.0.0.3 before 10.0.0.12. */
const named = new Intl.Collator('en', { numeric: true });

/** Rows as an operator wants them sorted, by a member or a member of a member; what a row does not say comes last either way. */
export function inOrder<Row extends object>(
  rows: readonly Row[],
  { sort, order = 'asc' }: { readonly sort?: string | undefined; readonly order?: 'asc' | 'desc' | undefined },
): Row[] {
  if (sort === undefined) return [...rows];
  const way = order === 'asc' ? 1 : -1;
  return rows.toSorted((left, right) => {
    const [a, b] = [memberOf(left, sort), memberOf(right, sort)];
    if (a === undefined || b === undefined) return Number(a === undefined) - Number(b === undefined);
    return way * (typeof a === 'number' && typeof b === 'number' ? a - b : named.compare(String(a), String(b)));
  });
}

function memberOf(row: object, path: string): string | number | undefined {
  const found = path.split('.').reduce<unknown>((at, name) => (at as Record<string, unknown> | undefined)?.[name], row);
  return typeof found === 'string' || typeof found === 'number' ? found : undefined;
}
