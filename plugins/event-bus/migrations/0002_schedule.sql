-- Events to be published later. One whose time has come moves into event_inbox under its own id, in the statement that marks it here:
-- from there it is appended like any other, and no crash loses or doubles it. Rows stay as long as the inbox keeps keys.
create table scheduled_events (
  schedule_id uuid primary key,
  env_id uuid not null,
  sub text not null,
  idempotency_key text not null,
  event_type text not null,
  stream_family text not null,
  payload text not null,
  created_at text not null,
  accepted_at timestamptz not null,
  produced_by text not null,
  publisher_id_token text,
  correlation_id text not null,
  deliver_at timestamptz not null,
  delivered_at timestamptz,
  constraint scheduled_events_once unique (env_id, sub, idempotency_key)
);
create index scheduled_events_due on scheduled_events (deliver_at) where delivered_at is null;
create index scheduled_events_waiting on scheduled_events (env_id, schedule_id) where delivered_at is null;
create index scheduled_events_delivered on scheduled_events (delivered_at) where delivered_at is not null;

-- What services of verticals declare that they publish: a new process knows it before its neighbours are up.
create table event_contracts (
  service text primary key,
  vertical text not null,
  version text not null,
  events text not null,
  updated_at timestamptz not null default now()
);
