import type { PageDecl } from '@platform/sdk/contract';

const decision = { field: 'effect', label: 'Decision', as: 'status', tones: { permit: 'ok', deny: 'bad' } } as const;

/** Pages of the registry that the console draws from their declaration. */
export const pages = {
  applications: {
    kind: 'table',
    title: 'Applications',
    description: 'App instances of this environment and where people reach them',
    source: 'applicationRows',
    key: 'app_instance_id',
    scope: 'env',
    live: ['platform:sys:app:created', 'platform:sys:app:updated', 'platform:sys:app:archived'],
    empty: 'No application is installed here.',
    rowActions: [
      { route: 'verifyApplicationRow', label: 'Verify domain', when: { field: 'custom_domain.status', is: 'pending' } },
      {
        route: 'archiveApplicationRow',
        label: 'Archive',
        confirm: 'Nobody reaches the application any more. Its host name stays with this organization.',
        tone: 'bad',
        when: { field: 'status', is: 'active' },
      },
    ],
    columns: [
      { field: 'name', label: 'Name' },
      { field: 'slug', label: 'Slug', as: 'code' },
      { field: 'hostname', label: 'Host', as: 'code' },
      { field: 'custom_domain.fqdn', label: 'Custom domain', as: 'code' },
      { field: 'custom_domain.status', label: 'Domain status', as: 'status', tones: { verified: 'ok', pending: 'warn', failed: 'bad' } },
      { field: 'auth_mode', label: 'Way in' },
      { field: 'status', label: 'Status', as: 'status', tones: { active: 'ok', archived: 'muted' } },
    ],
  },
  access: {
    kind: 'tabs',
    title: 'Access',
    description: 'Live holdings of people, narrowed by the policies in force.',
    tabs: [
      { label: 'Who can', page: 'who-can' },
      { label: 'What can somebody do', page: 'what-can' },
    ],
  },
  'who-can': {
    kind: 'table',
    title: 'Who can',
    nav: false,
    source: 'whoCan',
    key: 'user_id',
    filters: ['action', 'resource'],
    columns: [{ field: 'email', label: 'E-mail' }, { field: 'display_name', label: 'Name' }, { field: 'via', label: 'Through' }, decision, { field: 'why', label: 'Why' }],
    empty: 'Name an action, such as sys:env:admin. Nobody holds it, or none is named yet.',
  },
  'what-can': {
    kind: 'table',
    title: 'What can somebody do',
    nav: false,
    source: 'whatCan',
    key: 'action',
    filters: ['principal'],
    columns: [{ field: 'action', label: 'Action', as: 'code' }, { field: 'title', label: 'What it is' }, { field: 'service', label: 'Service' }, decision, { field: 'why', label: 'Why' }],
    empty: 'Name somebody: user:{id} or workload:{name}. They hold nothing here, or nobody is named yet.',
  },
  'audit-keys': {
    kind: 'table',
    title: 'Audit keys',
    description: 'Keys that sign the audit trail. What a retired key signed in its time stays proven.',
    scope: 'platform',
    source: 'auditKeyRows',
    key: 'key_id',
    rowActions: [
      {
        route: 'rotateAuditKey',
        label: 'Bring into force',
        confirm: 'The key in force signs this one and retires. Everything it signed last is signed again.',
        when: { field: 'status', is: 'next' },
      },
    ],
    columns: [
      { field: 'key_id', label: 'Key', as: 'code' },
      { field: 'status', label: 'Status', as: 'status', tones: { next: 'info', current: 'ok', retired: 'muted' } },
      { field: 'since', label: 'In force since', as: 'datetime' },
    ],
    empty: 'No key signs the trail.',
  },
  unfinished: {
    kind: 'table',
    title: 'Unfinished work',
    description: 'Creates that a crash left behind, and clean-ups that wait for another service.',
    scope: 'platform',
    source: 'listUnfinished',
    key: 'id',
    rowActions: [{ route: 'retryUnfinished', label: 'Try now' }],
    columns: [
      { field: 'work', label: 'Work', as: 'status', tones: { create: 'warn', clean_up: 'info' } },
      { field: 'kind', label: 'Of' },
      { field: 'name', label: 'Slug', as: 'code' },
      { field: 'since', label: 'Since', as: 'datetime' },
      { field: 'attempts', label: 'Tries', as: 'number' },
      { field: 'next_try_at', label: 'Next try', as: 'datetime' },
      { field: 'blocked_by', label: 'Waits for' },
    ],
    empty: 'Everything has ended.',
  },
} as const satisfies Readonly<Record<string, PageDecl>>;
