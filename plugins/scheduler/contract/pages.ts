import type { PageDecl } from '@platform/sdk/contract';

const states = { active: 'ok', paused: 'warn' } as const;
const outcomes = { waiting: 'info', done: 'ok', failed: 'bad' } as const;
const pause = {
  route: 'pauseSchedule',
  label: 'Pause',
  tone: 'warn',
  confirm: '{name} does not run until somebody resumes it.',
  when: { field: 'status', is: 'active' },
} as const;
const resume = { route: 'resumeSchedule', label: 'Resume', tone: 'ok', when: { field: 'status', is: 'paused' } } as const;
const run = { route: 'runSchedule', label: 'Run now', confirm: 'Run {name} at once?' } as const;

export const pages = {
  schedules: {
    kind: 'table',
    icon: 'clock',
    title: 'Schedules',
    description: 'What services have done at certain times',
    scope: 'platform',
    nav: 1,
    source: 'listSchedules',
    key: 'name',
    open: 'schedule',
    filters: ['service', 'status'],
    refresh: 15,
    empty: 'No service has a schedule. Each makes its own when it starts.',
    rowActions: [run, pause, resume],
    columns: [
      { field: 'name', label: 'Schedule', as: 'code' },
      { field: 'service', label: 'Of', as: 'code' },
      { field: 'cron', label: 'When', as: 'code' },
      { field: 'timezone', label: 'Zone' },
      { field: 'status', label: 'State', as: 'status', tones: states },
      { field: 'next_at', label: 'Next', as: 'datetime' },
      { field: 'last_at', label: 'Last', as: 'datetime' },
      { field: 'last_status', label: 'Outcome', as: 'status', tones: outcomes },
    ],
  },
  schedule: {
    kind: 'record',
    title: 'Schedule',
    scope: 'platform',
    nav: false,
    source: 'getSchedule',
    heading: '{name}',
    refresh: 10,
    fields: [
      { field: 'status', label: 'State', as: 'status', tones: states },
      { field: 'cron', label: 'When', as: 'code' },
      { field: 'timezone', label: 'Zone' },
      { field: 'next_at', label: 'Next', as: 'datetime' },
      { field: 'target.service', label: 'Service', as: 'code' },
      { field: 'target.path', label: 'Path', as: 'code' },
      { field: 'env_id', label: 'Environment', as: 'code' },
      { field: 'updated_at', label: 'Changed', as: 'datetime' },
    ],
    actions: [run, pause, resume],
    tabs: [
      {
        label: 'Firings',
        kind: 'table',
        source: 'listFirings',
        key: 'fire_id',
        empty: 'It has not run yet.',
        columns: [
          { field: 'fire_at', label: 'Due', as: 'datetime' },
          { field: 'status', label: 'Outcome', as: 'status', tones: outcomes },
          { field: 'attempts', label: 'Tries', as: 'number' },
          { field: 'http_status', label: 'Answer', as: 'number' },
          { field: 'code', label: 'Why', as: 'code' },
          { field: 'manual', label: 'By hand', as: 'bool' },
          { field: 'finished_at', label: 'Ended', as: 'datetime' },
        ],
        rowDetail: [{ field: 'fire_id', label: 'Firing', as: 'code' }],
      },
    ],
  },
  policy: { kind: 'policy', icon: 'shield', title: 'Policy', nav: 8 },
} as const satisfies Readonly<Record<string, PageDecl>>;
