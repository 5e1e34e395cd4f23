import type { PageDecl } from '@platform/sdk/contract';

const runs = { running: 'info', paused: 'warn', completed: 'ok', failed: 'bad' } as const;
const steps = { waiting: 'muted', ...runs } as const;
const ends = ['platform:workflow:run:completed', 'platform:workflow:run:failed'] as const;
const approve = { route: 'approveStep', label: 'Approve', tone: 'ok' } as const;
const cancel = { route: 'cancelRun', label: 'Cancel', tone: 'bad' } as const;
const decline = { route: 'declineStep', label: 'Decline', tone: 'bad' } as const;

export const pages = {
  runs: {
    kind: 'table',
    icon: 'layers',
    title: 'Runs',
    description: 'Workflows of this environment, and how far they are',
    nav: 1,
    source: 'listRuns',
    key: 'run_id',
    open: 'run',
    filters: ['status', 'workflow'],
    live: ends,
    refresh: 15,
    empty: 'No workflow ran here yet. Installing an application that asks for steps starts one.',
    columns: [
      { field: 'workflow', label: 'Workflow' },
      { field: 'status', label: 'State', as: 'status', tones: runs },
      { field: 'code', label: 'Why', as: 'code' },
      { field: 'service', label: 'Started by', as: 'code' },
      { field: 'created_at', label: 'Started', as: 'ago' },
      { field: 'finished_at', label: 'Ended', as: 'datetime' },
    ],
  },
  run: {
    kind: 'record',
    title: 'Run',
    nav: false,
    source: 'getRun',
    heading: '{workflow}',
    live: ends,
    refresh: 10,
    fields: [
      { field: 'status', label: 'State', as: 'status', tones: runs },
      { field: 'code', label: 'Why', as: 'code' },
      { field: 'detail', label: 'In words' },
      { field: 'service', label: 'Started by', as: 'code' },
      { field: 'idempotency_key', label: 'Key', as: 'code' },
      { field: 'created_at', label: 'Started', as: 'datetime' },
      { field: 'finished_at', label: 'Ended', as: 'datetime' },
      { field: 'run_id', label: 'Run', as: 'code' },
    ],
    actions: [
      { ...cancel, confirm: 'End this run of {workflow} for good?', when: { field: 'status', is: 'running' } },
      {
        ...cancel,
        confirm: 'End this run of {workflow} for good? The decision is not needed any more.',
        when: { field: 'status', is: 'paused' },
      },
    ],
    tabs: [
      {
        label: 'Steps',
        kind: 'table',
        source: 'listSteps',
        key: 'step_id',
        rowActions: [
          { ...approve, when: { field: 'status', is: 'paused' } },
          { ...decline, when: { field: 'status', is: 'paused' } },
        ],
        columns: [
          { field: 'kind', label: 'Step' },
          { field: 'status', label: 'State', as: 'status', tones: steps },
          { field: 'attempts', label: 'Tries', as: 'number' },
          { field: 'code', label: 'Why', as: 'code' },
          { field: 'title', label: 'To decide' },
          { field: 'assignee_group', label: 'By', as: 'code' },
          { field: 'expires_at', label: 'Until', as: 'datetime' },
          { field: 'finished_at', label: 'Ended', as: 'datetime' },
        ],
        rowDetail: [
          { field: 'detail', label: 'In words' },
          { field: 'decision', label: 'Decision', as: 'json' },
          { field: 'output', label: 'Output', as: 'json' },
        ],
      },
    ],
  },
  waiting: {
    kind: 'table',
    icon: 'check',
    title: 'To decide',
    description: 'Steps that wait for you or your groups. One that nobody decides in seven days fails its run',
    nav: 2,
    source: 'listDecisions',
    key: 'step_id',
    live: ends,
    refresh: 15,
    empty: 'Nothing waits for a decision.',
    rowActions: [approve, decline],
    columns: [
      { field: 'title', label: 'What' },
      { field: 'kind', label: 'Step' },
      { field: 'workflow', label: 'Workflow' },
      { field: 'assignee_group', label: 'By', as: 'code' },
      { field: 'paused_at', label: 'Since', as: 'ago' },
      { field: 'expires_at', label: 'Until', as: 'datetime' },
    ],
  },
  handlers: {
    kind: 'table',
    icon: 'server',
    title: 'Step handlers',
    description: 'Services that answer the steps of a domain',
    scope: 'platform',
    nav: 3,
    source: 'listHandlers',
    key: 'domain',
    empty: 'No service has registered itself. Each says at its start which steps it answers.',
    columns: [
      { field: 'domain', label: 'Domain', as: 'code' },
      { field: 'service', label: 'Service', as: 'code' },
      { field: 'kinds', label: 'Steps', as: 'json' },
      { field: 'path', label: 'Path', as: 'code' },
      { field: 'updated_at', label: 'Changed', as: 'datetime' },
    ],
  },
  policy: { kind: 'policy', icon: 'shield', title: 'Policy', nav: 8 },
} as const satisfies Readonly<Record<string, PageDecl>>;
