import type { RequestOf } from '@platform/sdk';
import type { Contract, Ctx } from '../context.ts';
import { slugFault } from './slug.ts';

/** Whether a slug could be created now; the create itself decides. */
export class SlugAvailability {
  readonly #ctx: Ctx;

  constructor(ctx: Ctx) {
    this.#ctx = ctx;
  }

  async check({ params, query }: RequestOf<Contract, 'slugAvailable'>) {
    const { slug } = params;
    const fault = slugFault(slug);
    if (fault) return { slug, available: false, reason: fault };
    const { sql } = this.#ctx.db;
    const taken =
      query.kind === 'env'
        ? await sql<
            object[]
          >`select 1 from envs where org_id = ${query.org_id ?? null}::uuid and slug = ${slug} and status <> 'archived' union all select 1 from tombstones where kind = 'env_slug' and name = ${`${query.org_id ?? ''}/${slug}`}`
        : await sql<object[]>`select 1 from orgs where slug = ${slug} and status <> 'archived' union all select 1 from tombstones where kind = 'org_slug' and name = ${slug}`;
    return { slug, available: taken.length === 0, reason: taken.length > 0 ? ('taken' as const) : null };
  }
}
