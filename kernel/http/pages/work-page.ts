import type { Manifest } from '../../base/manifest.ts';
import type { WireSection } from './page-schema.ts';

const queues: WireSection = {
  id: 'queues',
  title: 'Queues',
  kind: 'table',
  source: { resource: 'work/queues', items: 'items' },
  row_key: 'name',
  columns: [
    { label: 'Task', value: 'summary' },
    { label: 'Waiting', value: 'waiting', format: 'number' },
    { label: 'Due', value: 'due', format: 'number' },
    { label: 'Running', value: 'running', format: 'number' },
    { label: 'Dead', value: 'dead', format: 'number' },
    { label: 'Oldest due since', value: 'oldest_due_at', format: 'datetime' },
  ],
  empty: 'This service has no queue.',
};
const dead = (requires: string): WireSection => ({
  id: 'dead',
  title: 'Dead tasks',
  kind: 'table',
  source: { resource: 'work/dead', paged: true },
  row_key: 'task_id',
  columns: [
    { label: 'Task', value: 'name', format: 'code' },
    { label: 'Tries', value: 'attempts', format: 'number' },
    { label: 'Last failure', value: 'last_failure' },
    { label: 'Failed', value: 'ended_at', format: 'datetime' },
    { label: 'Correlation id', value: 'correlation_id', format: 'code' },
  ],
  row_actions: [
    { id: 'replay', label: 'Replay', resource: 'work/dead/{row.task_id}/replay', then: 'reload', requires },
    {
      id: 'drop',
      label: 'Give up',
      resource: 'work/dead/{row.task_id}/drop',
      confirm: 'The task is deleted and never done.',
      tone: 'bad',
      then: 'reload',
      requires,
    },
  ],
  row_detail: [{ label: 'Every failure', value: 'failures', format: 'json' }],
  empty: 'No task has failed for good.',
});
const jobs = (requires: string): WireSection => ({
  id: 'jobs',
  title: 'Jobs',
  kind: 'table',
  source: { resource: 'work/jobs', items: 'items' },
  row_key: 'name',
  columns: [
    { label: 'Job', value: 'summary' },
    { label: 'When', value: 'when' },
    { label: 'Last run', value: 'ended_at', format: 'datetime' },
    { label: 'Outcome', value: 'outcome', format: 'badge', tone_map: { ok: 'ok', failed: 'bad' } },
    { label: 'Next run', value: 'next_at', format: 'datetime' },
    { label: 'Last failure', value: 'error' },
  ],
  row_actions: [{ id: 'run', label: 'Run now', resource: 'work/jobs/{row.name}/run', then: 'reload', requires }],
  empty: 'This service has no job.',
});

/** Queues, dead tasks and jobs of a service as sections of a page; what its kernel serves under `/v1/admin/work`. */
export function workSections({ id, vertical, tasks, jobs: declared }: Manifest): WireSection[] {
  const requires = `${vertical === 'platform' ? '' : `${vertical}:`}${id}:work:admin`;
  return [
    ...(Object.keys(tasks).length > 0 ? [queues, dead(requires)] : []),
    ...(Object.keys(declared).length > 0 ? [jobs(requires)] : []),
  ];
}
