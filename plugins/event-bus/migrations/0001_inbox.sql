-- Every accepted event, durable before it is answered. `attempt` is the fence of whoever appends it: a mark with an older number counts
-- for nothing. Until `append_by` the row is that process's; afterwards the relay or the next copy of the request takes it over.
create table event_inbox (
  id uuid primary key,
  env_id uuid not null,
  sub text not null,
  idempotency_key text not null,
  event_type text not null,
  stream_family text not null,
  payload text not null,
  created_at text not null,
  produced_at timestamptz not null,
  produced_by text not null,
  publisher_id_token text,
  correlation_id text not null,
  append_by timestamptz not null,
  attempt int not null default 1,
  message_id text,
  relayed_at timestamptz,
  constraint event_inbox_once unique (env_id, sub, idempotency_key)
);
create index event_inbox_due on event_inbox (append_by) where message_id is null;
create index event_inbox_relayed on event_inbox (relayed_at) where relayed_at is not null;

create table audit_journal (
  id bigint generated always as identity primary key,
  at timestamptz not null,
  action text not null check (action in ('produce', 'ack', 'replay')),
  sub text not null,
  env_id uuid not null,
  stream_family text not null,
  event_type text,
  message_id text,
  outcome text not null,
  correlation_id text not null
);
create index audit_journal_at on audit_journal (at);

-- What the registry said about environments; produce into them is refused.
create table suspended_environments (
  env_id uuid primary key,
  since timestamptz not null default now()
);
