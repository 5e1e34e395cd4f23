import { reply } from '@platform/sdk';
import type { Property } from '../contract/index.ts';
import type { Ctx } from './context.ts';

/** What is measured: a listing or an installed application, provisioned once (G-STAT-02). */
export class Properties {
  readonly #ctx: Ctx;

  constructor(ctx: Ctx) {
    this.#ctx = ctx;
  }

  /** 201 for a new one; the same kind and reference again answers 200 and the one there is. */
  async provision({ env_id, kind, ref_id, name }: Pick<Property, 'env_id' | 'kind' | 'ref_id' | 'name'>) {
    const { sql } = this.#ctx.db;
    const [made] = await sql<Property[]>`
      insert into properties ${sql.row({ property_id: this.#ctx.platform.newId(), env_id, kind, ref_id, name })}
        on conflict on constraint properties_once do nothing
      returning property_id, env_id, kind, ref_id, name, created_at`;
    if (made) return made;
    const [known] = await sql<
      [Property]
    >`select property_id, env_id, kind, ref_id, name, created_at from properties where kind = ${kind} and ref_id = ${ref_id}`;
    return reply(known, { status: 200 });
  }

  async remove(propertyId: string): Promise<void> {
    await this.#ctx.db.sql`delete from properties where property_id = ${propertyId}`;
  }

  list(env: string, query: { limit?: number; cursor?: string }) {
    const { db, page } = this.#ctx;
    return page(
      query,
      { list: `properties ${env}`, order: { property_id: 'id' } },
      ({ where, order, limit }) =>
        db.sql<
          Property[]
        >`select property_id, env_id, kind, ref_id, name, created_at from properties where env_id = ${env} and ${where} order by ${order}
          limit ${limit}`,
    );
  }

  async get(env: string, propertyId: string): Promise<Property> {
    const [found] = await this.#ctx.db.sql<
      Property[]
    >`select property_id, env_id, kind, ref_id, name, created_at from properties where env_id = ${env}
      and property_id = ${propertyId}`;
    if (!found) throw this.#ctx.problem('property_not_found', { detail: 'Nothing of that number is measured in this environment.' });
    return found;
  }
}
