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
