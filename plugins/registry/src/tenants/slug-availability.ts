import type { Caller, RequestOf } from '@platform/sdk';
import type { Contract, Ctx } from '../context.ts';
import type { Access } from './access.ts';
import { slugFault } from './slug.ts';

/** Whether a slug could be created now; the create itself decides. */
export class SlugAvailability {
  readonly #ctx: Ctx;
  readonly #access: Access;

  constructor(ctx: Ctx, access: Access) {
    this.#ctx = ctx;
    this.#access = access;
  }

  async check({ params, query, caller }: RequestOf<Contract, 'slugAvailable'>) {
    const { slug } = params;
    if (query.kind === 'env') await this.#requireOrg(caller, query.org_id);
    const fault = slugFault(this.#ctx, slug);
    if (fault) return { slug, available: false, reason: fault };
    const { sql } = this.#ctx.db;
    const taken =
      query.kind === 'env'
        ? await sql<
            object[]
          >`select 1 from envs where org_id = ${query.org_id ?? null}::uuid and slug = ${slug} and status <> 'archived' union all select 1
            from tombstones where kind = 'env_slug' and name = ${`${query.org_id ?? ''}/${slug}`}`
        : await sql<
            object[]
          >`select 1 from orgs where slug = ${slug} and status <> 'archived' union all select 1 from tombstones where kind = 'org_slug'
            and name = ${slug}`;
    return { slug, available: taken.length === 0, reason: taken.length > 0 ? ('taken' as const) : null };
  }

  /** Slugs of environments are one organization's own affair: it must be named, and the caller must reach it (F-06, F-28). */
  async #requireOrg(caller: Caller, orgId: string | undefined): Promise<void> {
    if (orgId === undefined)
      throw this.#ctx.problem('org_required', { detail: 'Name the organization of the environment in the query member org_id.' });
    await this.#access.org(caller, orgId);
  }
}
