-- A domain belongs to the service that registered it first.
create table step_handlers (
  domain     text primary key,
  service    text not null,
  kinds      text[] not null,
  path       text not null,
  created_at timestamptz(3) not null,
  updated_at timestamptz(3) not null
);

create table runs (
  run_id          uuid primary key,
  env_id          uuid not null,
  workflow        text not null,
  domain          text not null,
  service         text not null,
  idempotency_key text not null,
  input           jsonb not null,
  status          text not null check (status in ('running', 'paused', 'completed', 'failed')),
  code            text,
  detail          text,
  created_at      timestamptz(3) not null,
  updated_at      timestamptz(3) not null,
  finished_at     timestamptz(3),
  constraint runs_once unique (env_id, service, idempotency_key)
);
create index runs_newest on runs (env_id, created_at desc, run_id desc);
create index runs_under_way on runs (env_id) where finished_at is null;
create index runs_old on runs (finished_at) where finished_at is not null;

create table steps (
  step_id        uuid primary key,
  run_id         uuid not null references runs on delete cascade,
  position       int not null,
  kind           text not null,
  status         text not null check (status in ('waiting', 'running', 'paused', 'completed', 'failed')),
  -- Calls since it began, or since the decision.
  attempts       int not null default 0,
  output         jsonb,
  code           text,
  detail         text,
  title          text,
  assignee_group text,
  paused_at      timestamptz(3),
  expires_at     timestamptz(3),
  decision       jsonb,
  finished_at    timestamptz(3),
  unique (run_id, position)
);
create index steps_to_decide on steps (expires_at) where status = 'paused';
