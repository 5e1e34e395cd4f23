import type { Ctx } from '../context.ts';

/** First labels of host names that lead to a service: what runs in this process under its hosts, and what registered (G-K-15). */
export class ServiceLabels {
  readonly #ctx: Ctx;
  readonly #own: ReadonlyMap<string, string>;

  constructor(ctx: Ctx) {
    this.#ctx = ctx;
    const manifests = ctx.catalog.manifests();
    this.#own = new Map(manifests.flatMap(({ id, hosts }) => [[id, id], ...(hosts ?? []).map(host => [host, id])] as [string, string][]));
  }

  /** The service of a label, or nothing. */
  async serviceOf(label: string): Promise<string | undefined> {
    const own = this.#own.get(label);
    if (own) return own;
    const { sql } = this.#ctx.db;
    const registered = await sql<
      object[]
    >`select 1 from verticals where registration->'services' @> ${sql.json([{ service: label }])} limit 1`;
    return registered.length > 0 ? label : undefined;
  }
}
