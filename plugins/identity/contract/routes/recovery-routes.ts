import { get, Id, Page, PageQuery, post, Type } from '@platform/sdk/contract';
import { Email, LinkToken, Password, Taken } from '../schema/account.ts';
import { RecoveryDecision, RecoveryOutlook, RecoveryRow } from '../schema/recovery.ts';
import { comesToTheSame, worksOnce } from '../idempotency.ts';

const ofRecovery = { recovery_id: Id };

const hosted = { public: 'A person who recovers an account has no credential any more but the token of the mail' } as const;
const page = ['csrf_mismatch', 'bad_origin', 'realm_not_found', 'rate_limited', 'store_away'] as const;
const limit = 16_384;
const changed = ['platform:auth:recovery:updated'] as const;
const decision = { gate: 'auth:recoveries:admin', env: 'own', body: RecoveryDecision, returns: RecoveryRow, emits: changed } as const;

/** Recovery of accounts whose people lost the second factor, and perhaps the password. Where an environment turned it on. */
export const recoveryRoutes = {
  requestRecovery: post('/v1/recovery/request', {
    summary: 'Ask to recover an account',
    idempotency: 'kernel',
    gate: hosted,
    limit,
    body: Type.Object({ email: Email }),
    returns: Taken,
    problems: [...page, 'recovery_off'],
  }),
  confirmRecovery: post('/v1/recovery/confirm', {
    summary: 'Confirm the recovery of an account with the token of a mail',
    idempotency: worksOnce,
    gate: hosted,
    limit,
    body: Type.Object({ token: LinkToken }),
    returns: RecoveryOutlook,
    problems: [...page, 'recovery_off', 'token_expired'],
    emits: changed,
  }),
  cancelRecovery: post('/v1/recovery/cancel', {
    summary: 'End the recovery of an account with the token of a mail',
    idempotency: worksOnce,
    gate: hosted,
    limit,
    body: Type.Object({ token: LinkToken }),
    returns: Taken,
    problems: [...page, 'token_expired'],
    emits: changed,
  }),
  finishRecovery: post('/v1/recovery/finish', {
    summary: 'Choose a new password at the end of a recovery; the second factors are taken away and every session ends',
    idempotency: worksOnce,
    gate: hosted,
    limit,
    body: Type.Object({ token: LinkToken, password: Password }),
    returns: Taken,
    problems: [...page, 'recovery_off', 'recovery_waits', 'token_expired', 'weak_password', 'busy'],
    emits: ['platform:auth:recovery:updated', 'platform:auth:user:updated', 'platform:auth:session:revoked'],
  }),

  endOwnRecovery: post('/v1/account/recovery/end', {
    summary: 'End the recovery of the own account',
    idempotency: comesToTheSame,
    gate: { public: 'The session of the sign-in pages says who it is' },
    problems: [...page, 'session_required', 'recovery_not_found'],
    emits: changed,
  }),

  listRecoveries: get('/v1/recoveries', {
    summary: 'Account recoveries, newest first',
    gate: { any: ['auth:users:read', 'auth:users:admin', 'auth:recoveries:admin'] },
    query: PageQuery,
    env: 'own',
    returns: Page(RecoveryRow),
  }),
  approveRecovery: post('/v1/recoveries/{recovery_id}/approve', {
    params: ofRecovery,
    ...decision,
    summary: "Approve the recovery of somebody else's account",
    problems: ['recovery_off', 'recovery_not_found', 'recovery_decided', 'own_account'],
  }),
  refuseRecovery: post('/v1/recoveries/{recovery_id}/refuse', {
    params: ofRecovery,
    ...decision,
    summary: 'Refuse the recovery of an account',
    problems: ['recovery_not_found', 'recovery_decided'],
  }),
};
