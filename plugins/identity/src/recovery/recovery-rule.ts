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
