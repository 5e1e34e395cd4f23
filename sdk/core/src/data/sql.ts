/** Parameterised SQL. Values are always bound, never spliced. */
export interface Sql {
  <Rows extends readonly object[]>(text: TemplateStringsArray, ...values: readonly unknown[]): Promise<Rows>;
  /** Columns and values of an insert, or assignments of an update. */
  row(columns: object): unknown;
  json(value: unknown): unknown;
  list(values: readonly unknown[]): unknown;
}
