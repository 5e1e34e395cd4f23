create table schedules (
  name       text primary key,
  service    text not null,
  env_id     uuid not null,
  cron       text not null,
  timezone   text not null,
  path       text not null,
  paused     boolean not null default false,
  -- None once there is no such time any more.
  next_at    timestamptz(3),
  created_at timestamptz(3) not null,
  updated_at timestamptz(3) not null
);
create index schedules_due on schedules (next_at) where not paused;
create index schedules_of on schedules (service, name);
create index schedules_env on schedules (env_id);

-- One row for each schedule and time, whoever wrote it.
create table firings (
  fire_id     uuid primary key,
  name        text not null references schedules on delete cascade,
  fire_at     timestamptz(3) not null,
  manual      boolean not null,
  status      text not null default 'waiting' check (status in ('waiting', 'done', 'failed')),
  attempts    int not null default 0,
  http_status int,
  code        text,
  finished_at timestamptz(3)
);
create index firings_newest on firings (name, fire_at desc, fire_id desc);

-- The process that looks for what is due.
create table leadership (
  only_one boolean primary key default true check (only_one),
  holder   text not null,
  until    timestamptz(3) not null
);
