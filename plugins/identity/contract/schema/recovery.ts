import { Id, type Static, Type } from '@platform/sdk/contract';
import { nullable } from '../schema.ts';

/**
 * What stands between the proven address and a new password: time, in which its owner can stop it, a decision of an administrator, or both.
 */
export const AccountRecovery = Type.Union([
  Type.Literal('off', { title: 'Off' }),
  Type.Literal('wait', { title: 'After a wait' }),
  Type.Literal('approval', { title: 'With an approval' }),
  Type.Literal('wait_and_approval', { title: 'After a wait and an approval' }),
]);
export type AccountRecovery = Static<typeof AccountRecovery>;
export const RecoveryWaitHours = Type.Integer({
  minimum: 24,
  maximum: 720,
  description: 'Hours between the confirmed request and the new password',
});
/** For the platform's own people, whose realm is a constant. */
export const recoveryConfig = {
  accountRecovery: Type.Union(AccountRecovery.anyOf, {
    env: 'PLATFORM_AUTH_ACCOUNT_RECOVERY',
    default: 'off',
    description:
      "Whether the platform's own people recover accounts they cannot sign in to, after a wait, by an administrator's approval, or both; an environment says so for its realm",
  }),
  recoveryWaitHours: Type.Integer({
    env: 'PLATFORM_AUTH_RECOVERY_WAIT_HOURS',
    default: 72,
    minimum: 24,
    maximum: 720,
    description: "Hours that such a recovery waits, in which the account's owner can end it",
  }),
};
/** What waits after the confirmation. */
export const RecoveryOutlook = Type.Object({ needs_approval: Type.Boolean(), ready_at: Type.String() });
const RecoveryStatus = Type.Union([
  Type.Literal('waiting'),
  Type.Literal('awaiting_approval'),
  Type.Literal('approved'),
  Type.Literal('offered'),
  Type.Literal('completed'),
  Type.Literal('refused'),
  Type.Literal('cancelled'),
  Type.Literal('expired'),
]);
export const RecoveryRow = Type.Object({
  recovery_id: Id,
  user_id: Id,
  email: Type.String(),
  display_name: nullable,
  status: RecoveryStatus,
  /** Browser and system on which it was confirmed, in a few words. */
  device: nullable,
  confirmed_at: Type.String(),
  ready_at: Type.String(),
  expires_at: Type.String(),
  decided_by: nullable,
  decided_at: nullable,
  decision_reason: nullable,
  can_approve: Type.Boolean(),
  can_refuse: Type.Boolean(),
});
/** The pattern is of the whole text: a form holds it so. */
export const RecoveryDecision = Type.Object({
  reason: Type.String({
    minLength: 1,
    maxLength: 500,
    pattern: '^[\\s\\S]*\\S[\\s\\S]*$',
    title: 'Reason',
    description: 'How you know, or doubt, that it is this person. For the trail; the person does not read it',
  }),
});
export type RecoveryRow = Static<typeof RecoveryRow>;
