import type { Caller, Sealed } from '@platform/sdk';
import type { Letter } from '../../contract/mail/mail-words-en.ts';
import type { IdentityTx } from '../context.ts';
import type { Person } from '../people/person.ts';
import type { RecoveryRule } from './recovery-rule.ts';

/** A recovery with whom its mails go to. */
export interface Recovery extends Pick<Person, 'user_id' | 'env_id' | 'email' | 'locale'> {
  readonly recovery_id: string;
  readonly status: 'asked' | 'waiting' | 'offered' | 'completed' | 'refused' | 'cancelled' | 'expired';
  readonly needs_approval: boolean;
  readonly approved: boolean;
  readonly due: boolean;
  readonly wait_until: string | null;
  readonly wait_hours: number | null;
  readonly confirmed_at: string | null;
  readonly expires_at: string;
  readonly cancel_sealed: Sealed | null;
}

type Tagged = IdentityTx['sql'];
export const purposeOf = (recoveryId: string): string => `auth:recovery:${recoveryId}`;
export const isReady = ({ due, approved, needs_approval }: Recovery): boolean => due && (approved || !needs_approval);
/** The mail that says what has to happen before the last one. */
export const outlookOf = (rule: RecoveryRule): Letter =>
  !rule.approval ? 'recovery_waiting' : rule.hours > 0 ? 'recovery_wait_judged' : 'recovery_judged';
export const open = (sql: Tagged): unknown => sql`r.status in ('asked', 'waiting', 'offered')`;
export const columns = (sql: Tagged): unknown => sql`
  r.recovery_id, r.env_id, r.user_id, r.status, r.needs_approval, r.approved, r.wait_until, r.wait_hours, r.wait_until <= now() as due,
    r.confirmed_at, r.expires_at, r.cancel_sealed, u.email, u.locale`;
export const decided = ({ sql }: IdentityTx, { caller, reason }: { caller: Caller; reason: string }): unknown =>
  sql`decided_by = ${caller.userId ?? null}, decided_at = now(), reason = ${reason.trim()}`;
/** One recovery, locked until the transaction ends. */
export async function lockedRecovery({ sql }: IdentityTx, recoveryId: string): Promise<Recovery | undefined> {
  const [row] = await sql<Recovery[]>`
    select ${columns(sql)} from account_recoveries r join users u using (user_id) where r.recovery_id = ${recoveryId} for update of r`;
  return row;
}
