import { type Sql, SYSTEM } from '@platform/sdk';
import type { Realm } from '../realms.ts';

export interface RecoveryRule {
  readonly approval: boolean;
  readonly hours: number;
}

/** What a realm puts between the proven address and a new password; nothing where accounts are not recovered. */
export function ruleOf({ account_recovery: mode, recovery_wait_hours: hours }: Realm): RecoveryRule | undefined {
  if (mode === 'off') return undefined;
  return { approval: mode !== 'wait', hours: mode === 'approval' ? 0 : hours };
}

/** The same for every realm at once, as rows of `env_id`, `approval` and `hours`. */
export function rulesOf(sql: Sql, system: Realm): unknown {
  const own = ruleOf(system);
  return sql`
    select env_id, account_recovery <> 'wait' as approval, case account_recovery when 'approval' then 0
      else recovery_wait_hours end as hours
    from realms where account_recovery <> 'off' and env_id <> ${SYSTEM.envId}
    union all select ${SYSTEM.envId}::uuid, ${own?.approval ?? false}, ${own?.hours ?? 0} where ${own !== undefined}`;
}
