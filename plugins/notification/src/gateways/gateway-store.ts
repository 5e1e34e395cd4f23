import type { Sql } from '@platform/sdk';
import type { Gateway } from '../../contract/schema/gateway.ts';

export interface GatewayRow extends Omit<Gateway, 'credentials'> {
  readonly secret_ref: string | null;
  readonly private_ok: boolean;
}

export const gatewayColumns = (sql: Sql): unknown =>
  sql`gateway_id, scope, org_id, env_id, channel, name, gateway_url, secret_ref, config, enabled, private_ok, version, created_at,
    updated_at`;

/** A gateway as others see it: its credentials are a reference (NTF-015). */
export function gatewayOf({ secret_ref, private_ok: _, ...row }: GatewayRow): Gateway {
  return { ...row, credentials: secret_ref === null ? null : { secret_ref } };
}
