import type postgres from 'postgres';

/**
 * Parameterised SQL, as the SDK shows it. Values are always bound, never spliced. A statement is sent when it is awaited;
 * one that is not may be a value of another, as a fragment.
 */
export interface Sql {
  <Rows extends readonly object[]>(text: TemplateStringsArray, ...values: readonly unknown[]): Promise<Rows>;
  /** Columns and values for `insert into t ${sql.row(o)}` and `update t set ${sql.row(o)}`. */
  row(columns: object): unknown;
  /** A JSON value, whatever the column's type would have made of it. */
  json(value: unknown): unknown;
  /** A list for `in ${sql.list(values)}`; an empty one matches nothing. */
  list(values: readonly unknown[]): unknown;
}

/** The public face of a `postgres` client or transaction. */
export function toSql(client: postgres.Sql | postgres.TransactionSql): Sql {
  const tag = (text: TemplateStringsArray, ...values: readonly unknown[]): unknown => {
    // Called as a plain function the driver would take a string for an identifier.
    if (!Array.isArray((text as { raw?: unknown } | undefined)?.raw)) throw new TypeError('sql is a template tag: sql`select ...`');
    return client(text, ...(values as postgres.ParameterOrFragment<never>[]));
  };
  return Object.assign(
    tag as unknown as Pick<Sql, never> & {
      <Rows extends readonly object[]>(text: TemplateStringsArray, ...values: readonly unknown[]): Promise<Rows>;
    },
    {
      row: (columns: object): unknown => client(columns as Record<string, never>),
      json: (value: unknown): unknown => client.json(value as postgres.JSONValue),
      list: (values: readonly unknown[]): unknown => client(values as readonly string[]),
    },
  );
}
