import type { Migration } from '../storage/schema/migrations.ts';

/**
 * Tasks and jobs of a service, in its own schema: they share the connection, the role and the transaction of the change with the outbox,
 * which no queue library can. A task that ended well is gone, or kept as `done` for as long as it says.
 */
const WORK_SCHEMA = `
create table work_tasks (
  task_id uuid primary key,
  name text not null,
  lane text not null,
  key text,
  payload jsonb not null,
  correlation_id text not null,
  subject text not null,
  state text not null default 'waiting' check (state in ('waiting', 'running', 'dead', 'done')),
  due_at timestamptz not null,
  attempts int not null default 0,
  taken_by text,
  leased_until timestamptz,
  failures jsonb not null default '[]',
  created_at timestamptz not null,
  ended_at timestamptz
);
create unique index work_tasks_key on work_tasks (name, key) where key is not null and state = 'waiting';
create index work_tasks_due on work_tasks (lane, due_at, task_id) where state = 'waiting';
create index work_tasks_next on work_tasks (due_at) where state = 'waiting';
create index work_tasks_leased on work_tasks (leased_until) where state = 'running';
create index work_tasks_ended on work_tasks (ended_at, task_id) where state in ('dead', 'done');

create table work_jobs (
  name text primary key,
  next_at timestamptz,
  started_at timestamptz,
  ended_at timestamptz,
  outcome text check (outcome in ('ok', 'failed')),
  error text,
  ran_by text,
  failed_at timestamptz
);
`;

/** Given to `migrate` as builtins of every service. */
export const WORK_MIGRATIONS: readonly Migration[] = [{ name: 'kernel_work_1', sql: WORK_SCHEMA }];
