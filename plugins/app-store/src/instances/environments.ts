import { isProblem } from '@platform/sdk';
import type { Ctx } from '../context.ts';
import { type InstanceRow, selectInstances } from './instance-row.ts';
import type { Instances } from './instances.ts';

/** Installed applications rest while their environment does (G-APP-03: active ⇄ suspended). */
export class Environments {
  readonly #ctx: Ctx;
  readonly #instances: Instances;

  constructor(ctx: Ctx, instances: Instances) {
    [this.#ctx, this.#instances] = [ctx, instances];
  }

  /** The registry's present word counts, not that of the event: two that come in the other order end the same. */
  async follow(envId: string): Promise<void> {
    const { db } = this.#ctx;
    const rows = await selectInstances(db.sql, db.sql`where env_id = ${envId} and status in ('active', 'suspended')`);
    if (rows.length === 0) return;
    const status = (await this.#active(envId)) ? 'active' : 'suspended';
    await db.tx(async tx => {
      for (const row of rows)
        if (row.status !== status) await this.#instances.change(tx, row, { from: [row.status], set: { status }, told: 'updated' });
    });
  }

  async followOrganization(orgId: string): Promise<void> {
    const envs = await this.#ctx.db.sql<
      Pick<InstanceRow, 'env_id'>[]
    >`select distinct env_id from instances where org_id = ${orgId} and status in ('active', 'suspended')`;
    for (const { env_id } of envs) await this.follow(env_id);
  }

  async #active(envId: string): Promise<boolean> {
    try {
      return (await this.#ctx.services.registry.tenant({ params: { env_id: envId } })).status === 'active';
    } catch (error) {
      if (isProblem(error) && error.code === 'env_not_found') return false;
      throw error;
    }
  }
}
