import type { PageDecl } from '@platform/sdk/contract';

/** Pages of an operator's console. */
export const pages = {
  users: {
    kind: 'table',
    title: 'People',
    source: 'listUsers',
    key: 'user_id',
    live: ['platform:auth:user:created', 'platform:auth:user:updated', 'platform:auth:user:deleted'],
    rowActions: [
      { route: 'unlockUser', label: 'Unlock', when: { field: 'status', is: 'locked' } },
      { route: 'enableUser', label: 'Open again', when: { field: 'status', is: 'disabled' } },
      { route: 'disableUser', label: 'Close account', confirm: 'The person is signed out everywhere and cannot sign in any more.', tone: 'bad', when: { field: 'status', is: 'active' } },
      {
        route: 'resetUserMfa',
        label: 'Remove second factor',
        confirm: 'Be sure who asks. The person is signed out everywhere and signs in with the password alone.',
        tone: 'warn',
        when: { field: 'mfa_enrolled', is: true },
      },
      { route: 'deleteUser', label: 'Delete account', confirm: 'The account goes for good, with its memberships. To keep the person out for a while, close the account.', tone: 'bad' },
    ],
    columns: [
      { field: 'email', label: 'E-mail' },
      { field: 'display_name', label: 'Name' },
      { field: 'status', label: 'Status', as: 'status', tones: { active: 'ok', locked: 'warn', disabled: 'muted' } },
      { field: 'mfa_enrolled', label: 'Second factor', as: 'bool' },
      { field: 'last_sign_in_at', label: 'Last sign-in', as: 'datetime' },
    ],
  },
  sessions: {
    kind: 'table',
    title: 'Sessions',
    source: 'listSessions',
    key: 'session_id',
    live: ['platform:auth:session:revoked'],
    scope: 'env',
    rowActions: [{ route: 'revokeSession', label: 'End session', confirm: 'The person is signed out everywhere this session is used.', tone: 'bad' }],
    columns: [
      { field: 'email', label: 'E-mail' },
      { field: 'created_at', label: 'Since', as: 'datetime' },
      { field: 'expires_at', label: 'Until', as: 'datetime' },
    ],
  },
  recoveries: {
    kind: 'table',
    title: 'Account recovery',
    description: 'People who cannot sign in and have confirmed by mail that they want their account back. Approve only when you know who asks: call them, or meet them.',
    source: 'listRecoveries',
    key: 'recovery_id',
    live: ['platform:auth:recovery:updated'],
    empty: 'Nobody recovers an account.',
    rowActions: [
      {
        route: 'approveRecovery',
        label: 'Approve',
        confirm: 'The person chooses a new password and loses the second factor. Be sure who asks.',
        tone: 'warn',
        when: { field: 'can_approve', is: true },
      },
      { route: 'refuseRecovery', label: 'Refuse', confirm: 'The recovery ends, and the person is told so.', tone: 'bad', when: { field: 'can_refuse', is: true } },
    ],
    columns: [
      { field: 'email', label: 'E-mail' },
      { field: 'display_name', label: 'Name' },
      {
        field: 'status',
        label: 'Status',
        as: 'status',
        tones: { waiting: 'info', awaiting_approval: 'warn', approved: 'info', offered: 'info', completed: 'ok', refused: 'bad', cancelled: 'muted', expired: 'muted' },
      },
      { field: 'confirmed_at', label: 'Confirmed', as: 'datetime' },
      { field: 'ready_at', label: 'Not before', as: 'datetime' },
    ],
    rowDetail: [
      { field: 'device', label: 'Confirmed on' },
      { field: 'expires_at', label: 'Ends', as: 'datetime' },
      { field: 'decided_by', label: 'Decided by' },
      { field: 'decided_at', label: 'Decided', as: 'datetime' },
      { field: 'decision_reason', label: 'Reason' },
    ],
  },
  audit: {
    kind: 'table',
    title: 'Recorded here',
    description: 'What identity itself recorded in the last 30 days, newest first. The whole trail is on the page Audit.',
    source: 'listOwnAudit',
    key: 'audit_id',
    filters: ['action', 'correlation_id'],
    empty: 'Nothing was recorded in the last 30 days.',
    columns: [
      { field: 'ts', label: 'Time', as: 'datetime' },
      { field: 'action', label: 'Action' },
      { field: 'outcome', label: 'Outcome', as: 'status', tones: { success: 'ok', denied: 'warn', error: 'bad' } },
      { field: 'correlation_id', label: 'Correlation id', as: 'code' },
    ],
  },
} as const satisfies Readonly<Record<string, PageDecl>>;
