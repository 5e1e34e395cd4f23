import type { StepHandler } from '../contract/schema.ts';
import type { Ctx, Of } from './context.ts';
import { isOfWorkflow } from './definitions.ts';

/** Who answers steps, by domain (WFL-001). */
export class StepHandlers {
  readonly #ctx: Ctx;

  constructor(ctx: Ctx) {
    this.#ctx = ctx;
  }

  /** A service registers itself. A domain belongs to the service that came first, but one that is called like a service is that service's. */
  async register({ params: { domain }, body, caller }: Of<'registerHandler'>): Promise<StepHandler> {
    const { db, clock, problem, catalog } = this.#ctx;
    if (body.service !== caller.service)
      throw problem('handler_denied', { detail: `The caller is ${caller.service}; it registers itself alone.` });
    const named = isOfWorkflow(domain) || catalog.manifests().some(({ id }) => id === domain);
    if (named && domain !== caller.service)
      throw problem('domain_taken', { detail: `The domain ${domain} belongs to the service of that name.` });
    const now = clock.now();
    return db.tx(async tx => {
      const row = { domain, service: body.service, kinds: body.kinds, path: body.path, created_at: now, updated_at: now };
      const [changed] = await tx.sql<StepHandler[]>`
        insert into step_handlers ${tx.sql.row(row)} on conflict (domain) do update
          set kinds = excluded.kinds, path = excluded.path, updated_at = excluded.updated_at
        where step_handlers.service = excluded.service
          and (step_handlers.kinds, step_handlers.path) is distinct from (excluded.kinds, excluded.path)
        returning *`;
      if (changed) return changed;
      const [known] = await tx.sql<StepHandler[]>`select * from step_handlers where domain = ${domain}`;
      if (known?.service !== body.service)
        throw problem('domain_taken', { detail: `The steps of ${domain} are answered by another service.` });
      return known;
    });
  }

  list(query: Of<'listHandlers'>['query']) {
    const { db, page } = this.#ctx;
    return page(
      query,
      { list: 'handlers', order: { domain: 'text' }, ascending: true },
      ({ where, order, limit }) => db.sql<StepHandler[]>`select * from step_handlers where ${where} order by ${order} limit ${limit}`,
    );
  }

  async of(domain: string): Promise<StepHandler | undefined> {
    const [found] = await this.#ctx.db.sql<StepHandler[]>`select * from step_handlers where domain = ${domain}`;
    return found;
  }
}
