import type { Caller } from '@platform/sdk';
import type { Limits } from '../../contract/schema.ts';
import type { FuncContext } from '../context.ts';
import type { Enablement } from '../enablement.ts';

/** What one execution may use, by environment (G-FUNC-06). */
export class EnvironmentLimits {
  readonly #ctx: FuncContext;
  readonly #enablement: Enablement;

  constructor(ctx: FuncContext, enablement: Enablement) {
    [this.#ctx, this.#enablement] = [ctx, enablement];
  }

  async of(env: string): Promise<Limits> {
    const [row] = await this.#ctx.db.sql<Limits[]>`select fuel, memory_mib, timeout_ms from limits where env_id = ${env}`;
    const { fuel, memoryBytes, timeoutMs } = this.#ctx.config;
    return row ?? { fuel, memory_mib: Math.floor(memoryBytes / 1_048_576), timeout_ms: timeoutMs };
  }

  async put(env: string, limits: Limits, caller: Caller): Promise<Limits> {
    await this.#enablement.require(env);
    await this.#ctx.db.tx(async tx => {
      const [from] = await tx.sql<Limits[]>`select fuel, memory_mib, timeout_ms from limits where env_id = ${env} for update`;
      await tx.sql`
        insert into limits ${tx.sql.row({ env_id: env, ...limits })}
        on conflict (env_id) do update set (fuel, memory_mib, timeout_ms) = (excluded.fuel, excluded.memory_mib, excluded.timeout_ms)`;
      const details = { from: from ?? 'default', to: limits };
      await tx.audit({ action: 'limits.replaced', envId: env, caller, resource: { type: 'env', id: env }, details });
    });
    return limits;
  }
}
