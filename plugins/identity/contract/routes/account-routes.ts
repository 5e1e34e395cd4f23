import { del, get, Id, post, put, Type } from '@platform/sdk/contract';
import { Account, Authenticator, Email, LinkToken, OwnSession, Password, RecoveryCodes, ShownAgain, Taken } from '../schema/account.ts';
import { Name, OAuthContext, Signed, User } from '../schema.ts';
import { challenge, comesToTheSame, worksOnce } from '../idempotency.ts';

const ofUser = { user_id: Id };
const ofGroupRole = { group: Name, role: Name };

const hosted = { public: 'A person signs in here; there is no credential yet' } as const;
const own = { public: 'The sign-in session of the browser is the credential; the handler asks for it' } as const;
const page = ['csrf_mismatch', 'bad_origin', 'realm_not_found'] as const;
const braked = ['rate_limited', 'store_away'] as const;
const reauthenticated = [...page, ...braked, 'session_required', 'wrong_password', 'sign_in_again', 'account_locked', 'busy'] as const;
const limit = 16_384;
const updated = ['platform:auth:user:updated'] as const;
const admin = { gate: 'auth:users:admin', env: 'own', returns: User } as const;

/** Accounts: opened, proven, recovered and kept by the people they belong to, and managed by administrators (G-AUTH-05, G-AUTH-06). */
export const accountRoutes = {
  signUp: post('/v1/sign-up', {
    summary: 'Open an account',
    idempotency: 'kernel',
    gate: hosted,
    limit,
    body: Type.Object({
      email: Email,
      password: Password,
      display_name: Type.Optional(Type.String({ maxLength: 120 })),
      oauth: OAuthContext,
    }),
    returns: Signed,
    problems: [...page, ...braked, 'signup_disabled', 'registry_away', 'weak_password', 'busy'],
    emits: ['platform:auth:user:created'],
  }),
  verifyEmail: post('/v1/email/verify', {
    summary: 'Confirm an e-mail address with the token of a mail',
    idempotency: worksOnce,
    gate: hosted,
    limit,
    body: Type.Object({ token: LinkToken }),
    returns: Type.Object({
      ...Taken.properties,
      joined: Type.Optional(Type.Boolean({ description: 'By the invitation that the account was opened by' })),
      email: Type.Optional(Type.String({ description: 'Of the invited person, to go on with' })),
    }),
    problems: [...page, ...braked, 'token_expired'],
    emits: updated,
  }),
  requestVerification: post('/v1/email/verify-request', {
    summary: 'Ask for another mail that confirms an e-mail address',
    idempotency: 'kernel',
    gate: hosted,
    limit,
    body: Type.Object({ email: Email }),
    returns: Taken,
    problems: [...page, ...braked],
  }),
  requestPasswordReset: post('/v1/password/reset-request', {
    summary: 'Ask for a mail to choose a new password with',
    idempotency: 'kernel',
    gate: hosted,
    limit,
    body: Type.Object({ email: Email }),
    returns: Taken,
    problems: [...page, ...braked],
  }),
  resetPassword: post('/v1/password/reset', {
    summary: 'Choose a new password with the token of a mail',
    idempotency: worksOnce,
    gate: hosted,
    limit,
    body: Type.Object({ token: LinkToken, password: Password }),
    returns: Taken,
    problems: [...page, ...braked, 'token_expired', 'weak_password', 'busy'],
    emits: ['platform:auth:user:updated', 'platform:auth:session:revoked'],
  }),
  verifyMfa: post('/v1/mfa/verify', {
    summary: 'Sign in with the second factor',
    idempotency: worksOnce,
    gate: hosted,
    limit,
    body: Type.Object({
      challenge_id: Type.String({ maxLength: 100 }),
      method: Type.Union([Type.Literal('totp'), Type.Literal('recovery_code')]),
      code: Type.String({ minLength: 1, maxLength: 64 }),
    }),
    returns: Signed,
    problems: [...page, ...braked, 'account_locked', 'invalid_code', 'invalid_credentials', 'token_expired'],
  }),

  account: get('/v1/account', {
    summary: 'The own account',
    gate: own,
    returns: Account,
    problems: ['realm_not_found', 'session_required'],
  }),
  ownSessions: get('/v1/account/sessions', {
    summary: 'Where one is signed in',
    gate: own,
    returns: Type.Object({ items: Type.Array(OwnSession) }),
    problems: ['realm_not_found', 'session_required'],
  }),
  endOwnSession: post('/v1/account/sessions/{session_id}/revoke', {
    params: { session_id: Type.String({ maxLength: 200 }) },
    summary: 'Sign out one of the own devices',
    idempotency: comesToTheSame,
    gate: own,
    problems: [...page, 'session_required', 'session_not_found'],
    emits: ['platform:auth:session:revoked'],
  }),
  endOtherSessions: post('/v1/account/sessions/revoke-others', {
    summary: 'Sign out every own device but this one',
    idempotency: comesToTheSame,
    gate: own,
    returns: Type.Object({ ended: Type.Integer() }),
    problems: [...page, 'session_required'],
    emits: ['platform:auth:session:revoked'],
  }),
  changeOwnPassword: post('/v1/account/password', {
    summary: 'Change the own password; every other device is signed out',
    idempotency: comesToTheSame,
    gate: own,
    limit,
    body: Type.Object({ current_password: Password, password: Password }),
    returns: Signed,
    problems: [...reauthenticated, 'invalid_credentials', 'weak_password'],
    emits: ['platform:auth:user:updated', 'platform:auth:session:revoked'],
  }),
  beginMfa: post('/v1/account/mfa/begin', {
    summary: 'Begin to set up an authenticator app',
    idempotency: challenge,
    gate: own,
    limit,
    body: Type.Object({ password: ShownAgain }),
    returns: Authenticator,
    problems: [...reauthenticated, 'mfa_enrolled'],
  }),
  confirmMfa: post('/v1/account/mfa/confirm', {
    summary: 'Finish the set-up with a code of the app; the recovery codes are told once',
    idempotency: worksOnce,
    gate: own,
    limit,
    body: Type.Object({ code: Type.String({ minLength: 1, maxLength: 64 }) }),
    returns: RecoveryCodes,
    problems: [...page, ...braked, 'session_required', 'account_locked', 'invalid_code', 'token_expired'],
    emits: updated,
  }),
  removeMfa: post('/v1/account/mfa/remove', {
    summary: 'Sign in without the authenticator app again',
    idempotency: comesToTheSame,
    gate: own,
    limit,
    body: Type.Object({ password: ShownAgain }),
    problems: [...reauthenticated, 'mfa_not_enrolled'],
    emits: updated,
  }),
  renewRecoveryCodes: post('/v1/account/mfa/recovery-codes', {
    summary: 'New recovery codes; the old ones are void',
    idempotency: 'secret',
    gate: own,
    limit,
    body: Type.Object({ password: ShownAgain }),
    returns: RecoveryCodes,
    problems: [...reauthenticated, 'mfa_not_enrolled'],
    emits: updated,
  }),

  disableUser: post('/v1/admin/users/{user_id}/disable', {
    params: ofUser,
    ...admin,
    summary: 'Close an account: its sessions end, and nobody signs in to it',
    problems: ['user_not_found', 'own_account', 'last_administrator'],
    emits: ['platform:auth:user:updated', 'platform:auth:session:revoked'],
  }),
  enableUser: post('/v1/admin/users/{user_id}/enable', {
    params: ofUser,
    ...admin,
    summary: 'Open a closed account again',
    problems: ['user_not_found'],
    emits: updated,
  }),
  unlockUser: post('/v1/admin/users/{user_id}/unlock', {
    params: ofUser,
    ...admin,
    summary: 'Forgive the failed attempts that locked an account',
    problems: ['user_not_found', 'store_away'],
    emits: updated,
  }),
  resetUserMfa: post('/v1/admin/users/{user_id}/mfa/reset', {
    params: ofUser,
    ...admin,
    summary: 'Take away the second factor of somebody who lost it',
    problems: ['user_not_found', 'own_account', 'mfa_not_enrolled'],
    emits: ['platform:auth:user:updated', 'platform:auth:session:revoked'],
  }),

  putSignUpRole: put('/v1/admin/groups/{group}/sign-up-roles/{role}', {
    params: ofGroupRole,
    summary: 'Give a role to everybody who signs up into a group',
    gate: 'auth:membership:write',
    returns: Type.Object({ group: Name, role: Name }),
    problems: ['target_env_missing', 'group_not_found', 'role_not_found'],
    hidden: true,
  }),
  deleteSignUpRole: del('/v1/admin/groups/{group}/sign-up-roles/{role}', {
    params: ofGroupRole,
    summary: 'Give a role to nobody who signs up any more',
    gate: 'auth:membership:write',
    problems: ['target_env_missing'],
    hidden: true,
  }),
};
