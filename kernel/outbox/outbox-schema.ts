import type { Migration } from '../storage/schema/migrations.ts';

/**
 * The outbox and inbox of a service, in its own schema (G-K-12). `hold` keeps a committed row from the relay; `parked` takes a row that
 * the bus refuses out of the line; `refusals` counts such answers apart from `attempts`, so that an outage parks nothing.
 */
export const OUTBOX_SCHEMA = `
create table outbox (
  id uuid primary key,
  env_id uuid not null,
  event_type text not null,
  stream_family text not null,
  payload jsonb not null,
  correlation_id text not null,
  publisher_subject text not null,
  publisher_id_token text,
  hold text,
  created_at timestamptz not null default now(),
  relayed boolean not null default false,
  relayed_at timestamptz,
  parked boolean not null default false,
  attempts int not null default 0,
  refusals int not null default 0,
  next_retry_at timestamptz,
  last_error text
);
create index outbox_pending on outbox (env_id, created_at, id) where not relayed and hold is null and not parked;
create index outbox_held on outbox (hold) where hold is not null;
create index outbox_relayed on outbox (relayed_at) where relayed;
create index outbox_parked on outbox (created_at) where parked;

create table inbox (
  consumer text not null,
  idempotency_key text not null,
  at timestamptz not null default now(),
  primary key (consumer, idempotency_key)
);
create index inbox_at on inbox (at);
`;

/** Which process leads each ordered consumer, and until when unless it renews. */
const LEADS_SCHEMA = `
create table consumer_leads (
  consumer text primary key,
  holder text not null,
  until timestamptz not null
);
`;

/** Answers of creates under an `Idempotency-Key` (G-K-03); `committed` since a transaction of the request has taken effect. */
const ANSWERS_SCHEMA = `
create table idempotent_answers (
  caller text not null,
  key text not null,
  fingerprint bytea not null,
  started_at timestamptz not null,
  committed boolean not null default false,
  status int,
  headers jsonb,
  body text,
  kept boolean not null default true,
  primary key (caller, key)
);
create index idempotent_answers_at on idempotent_answers (started_at);
`;

/** Given to `migrate` as `builtins`. */
export const OUTBOX_MIGRATIONS: readonly Migration[] = [
  { name: 'kernel_outbox_1', sql: OUTBOX_SCHEMA },
  { name: 'kernel_outbox_2', sql: LEADS_SCHEMA },
  { name: 'kernel_answers_1', sql: ANSWERS_SCHEMA },
];
