import type { Sql } from '@platform/sdk';
import type { Gateway } from '../../contract/schema/gateway.ts';
import type { Ctx } from '../context.ts';

export interface GatewayRow extends Omit<Gateway, 'credentials'> {
  readonly secret_ref: string | null;
  readonly private_ok: boolean;
}

export const gatewayColumns = (sql: Sql): unknown =>
  sql`gateway_id, scope, org_id, env_id, channel, name, gateway_url, secret_ref, config, enabled, private_ok, version, created_at, updated_at`;

/** A gateway as others see it: its credentials are a reference (NTF-015). */
export function gatewayOf({ secret_ref, private_ok: _, ...row }: GatewayRow): Gateway {
  return { ...row, credentials: secret_ref === null ? null : { secret_ref } };
}

/**
 * The gateway a message of an environment leaves by: the environment's own, its organization's, the platform's; the first that is enabled
 * (G-POST-04).
 */
export async function chosenGateway(
  ctx: Ctx,
  envId: string,
  channel: string,
  orgOf: (envId: string) => Promise<string>,
): Promise<GatewayRow | undefined> {
  const { sql } = ctx.db;
  const rows = await sql<GatewayRow[]>`
    select ${gatewayColumns(sql)} from gateways where channel = ${channel} and enabled and (scope = 'sys' or scope = 'org' or env_id = ${envId})
    order by case scope when 'env' then 1 when 'org' then 2 else 3 end, created_at, gateway_id limit 500`;
  const own = rows.find(({ scope }) => scope === 'env');
  if (own) return own;
  // The registry is asked only where the answer matters.
  const org = rows.some(({ scope }) => scope === 'org') ? await orgOf(envId) : undefined;
  return rows.find(({ scope, org_id }) => scope === 'sys' || org_id === org);
}
