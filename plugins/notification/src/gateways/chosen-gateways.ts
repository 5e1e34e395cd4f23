import type { Cache } from '@platform/sdk';
import type { Ctx } from '../context.ts';
import type { Tenants } from '../people/tenants.ts';
import { gatewayColumns, type GatewayRow } from './gateway-store.ts';

const FRESH_MS = 1_000;
const MOST = 10_000;

/**
 * The gateway a message of an environment leaves by: the environment's own, its organization's, the platform's; the first that is enabled
 * (G-POST-04). Known for a second; a change counts at once in the process that made it.
 */
export class ChosenGateways {
  readonly #ctx: Ctx;
  readonly #tenants: Tenants;
  readonly #known: Cache<GatewayRow | 'none'>;

  constructor(ctx: Ctx, tenants: Tenants) {
    [this.#ctx, this.#tenants] = [ctx, tenants];
    this.#known = ctx.cache({ max: MOST, ttl: FRESH_MS });
  }

  async of(envId: string, channel: string): Promise<GatewayRow | undefined> {
    const chosen = await this.#known.get(`${envId} ${channel}`, async () => (await this.#read(envId, channel)) ?? 'none');
    return chosen === 'none' ? undefined : chosen;
  }

  changed(): void {
    this.#known.forget();
  }

  async #read(envId: string, channel: string): Promise<GatewayRow | undefined> {
    const { sql } = this.#ctx.db;
    const first = sql`order by created_at, gateway_id limit 1`;
    const [own] = await sql<GatewayRow[]>`
      select ${gatewayColumns(sql)} from gateways where scope = 'env' and env_id = ${envId} and channel = ${channel} and enabled ${first}`;
    if (own) return own;
    const [organizations] = await sql<object[]>`select 1 from gateways where scope = 'org' and channel = ${channel} and enabled limit 1`;
    // The registry is asked only where the answer matters.
    const org = organizations ? await this.#tenants.orgOf(envId) : null;
    const [shared] = await sql<GatewayRow[]>`
      select ${gatewayColumns(sql)} from gateways where channel = ${channel} and enabled
        and (scope = 'sys' or (scope = 'org' and org_id = ${org}))
      order by case scope when 'org' then 1 else 2 end, created_at, gateway_id limit 1`;
    return shared;
  }
}
