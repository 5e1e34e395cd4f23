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

/**
 * What is due is found by steps from lane to lane, whatever waits in them. The planner knows nothing true of a queue's table, which is full
 * one minute and empty the next: told of few rows it reads and sorts them all. In this function it may do neither, and walks the index.
 *
 * `held` counts what each lane has under way. Every lane that is not busy gives an equal share of `most`, at least one, and no more than it
 * lacks to `abreast`.
 */
const TAKE = `
create index work_tasks_lanes on work_tasks (name, lane, due_at, task_id) where state = 'waiting';
drop index work_tasks_due;
create function work_take(names text[], most int, after text, busy text[], held jsonb, abreast int, worker text, at timestamptz, until timestamptz)
returns table (task_id uuid, name text, lane text, payload jsonb, correlation_id text, subject text, attempts int)
language sql set enable_sort = off set enable_bitmapscan = off set enable_seqscan = off as $$
  with recursive heads (name, lane, place) as (
    select n.name, (select t.lane from work_tasks t where t.state = 'waiting' and t.name = n.name and t.lane > coalesce(after, '')
      and t.due_at <= at order by t.lane limit 1), 1
    from (select unnest(names) as name) n where after is not null
    union all
    select n.name, (select t.lane from work_tasks t where t.state = 'waiting' and t.name = n.name and t.due_at <= at order by t.lane limit 1), 1
    from (select unnest(names) as name) n where after is null
    union all
    select h.name, (select t.lane from work_tasks t where t.state = 'waiting' and t.name = h.name and t.lane > h.lane
      and t.due_at <= at order by t.lane limit 1), h.place + 1
    from heads h where h.lane is not null and h.place < most + cardinality(busy)
  ),
  lanes as (select distinct h.lane from heads h where h.lane is not null and h.lane <> all(busy) order by h.lane limit most),
  shares as (
    select l.lane, greatest(1, least(abreast - coalesce((held ->> l.lane)::int, 0), most / (select count(*)::int from lanes))) as share from lanes l
  ),
  first as (
    select chosen.task_id from shares s cross join lateral (
      select oldest.task_id from (select unnest(names) as name) n cross join lateral (
        select t.task_id, t.due_at from work_tasks t
        where t.state = 'waiting' and t.name = n.name and t.lane = s.lane and t.due_at <= at
        order by t.due_at, t.task_id limit s.share for update skip locked
      ) oldest order by oldest.due_at, oldest.task_id limit s.share
    ) chosen
  )
  update work_tasks w set state = 'running', attempts = w.attempts + 1, taken_by = worker, leased_until = until
  where w.task_id in (select f.task_id from first f) and w.state = 'waiting'
  returning w.task_id, w.name, w.lane, w.payload, w.correlation_id, w.subject, w.attempts
$$;
`;

/** Given to `migrate` as builtins of every service. */
export const WORK_MIGRATIONS: readonly Migration[] = [
  { name: 'kernel_work_1', sql: WORK_SCHEMA },
  { name: 'kernel_work_2', sql: TAKE },
];
