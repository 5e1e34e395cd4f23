import type { Ctx } from '../context.ts';
import type { Verticals } from '../verticals.ts';

/** First labels of host names that lead to a service: what runs in this process under its hosts, and what registered (G-K-15). */
export class ServiceLabels {
  readonly #verticals: Verticals;
  readonly #own: ReadonlyMap<string, string>;

  constructor(ctx: Ctx, verticals: Verticals) {
    this.#verticals = verticals;
    const manifests = ctx.catalog.manifests() as readonly { id: string; hosts?: readonly string[] }[];
    this.#own = new Map(manifests.flatMap(({ id, hosts }) => [[id, id], ...(hosts ?? []).map(host => [host, id])] as [string, string][]));
  }

  /** The service of a label, or nothing. */
  async serviceOf(label: string): Promise<string | undefined> {
    return this.#own.get(label) ?? ((await this.#verticals.serviceIds()).includes(label) ? label : undefined);
  }

  async has(label: string): Promise<boolean> {
    return (await this.serviceOf(label)) !== undefined;
  }
}
