create table properties (
  property_id uuid primary key,
  env_id      uuid not null,
  kind        text not null check (kind in ('listing', 'instance')),
  ref_id      text not null,
  name        text not null,
  created_at  timestamptz(3) not null default now(),
  constraint properties_once unique (kind, ref_id)
);
create index properties_env on properties (env_id, property_id desc);

create table measurements (
  measurement_id  uuid primary key,
  property_id     uuid not null references properties on delete cascade,
  metric          text not null,
  value           double precision not null,
  at              timestamptz(3) not null,
  dimensions      jsonb not null default '{}',
  idempotency_key text,
  summed          boolean not null default false
);
create unique index measurements_once on measurements (property_id, idempotency_key) where idempotency_key is not null;
create index measurements_waiting on measurements (at) where not summed;
create index measurements_age on measurements (at);

create table aggregates (
  property_id uuid not null references properties on delete cascade,
  minute      timestamptz(3) not null,
  metric      text not null,
  value       double precision not null,
  count       int not null,
  primary key (property_id, minute, metric)
);
create index aggregates_age on aggregates (minute);

-- One row for each service and minute, by whichever process is first; and one for each day.
create table traffic (
  period   text not null check (period in ('minute', 'day')),
  at       timestamptz(3) not null,
  service  text not null,
  requests int not null,
  errors   int not null,
  statuses jsonb not null,
  p50_ms   double precision not null,
  p95_ms   double precision not null,
  p99_ms   double precision not null,
  primary key (period, at, service)
);
