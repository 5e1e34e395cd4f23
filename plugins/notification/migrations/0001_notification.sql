-- Messages: a row is committed before anything is delivered, and `delivered_at` says that the relay is done with it (NTF-008, NTF-014). A replay
-- of a dead letter takes it back; `shown_at` stays: since then it lies in the inbox.
-- What it says, and to whom it goes beyond the inbox, is sealed.
create table messages (
  notification_id uuid primary key,
  env_id uuid not null,
  user_id text not null,
  stream_family text not null,
  idempotency_key text,
  category text not null,
  priority text not null,
  content jsonb not null,
  template_key text,
  channels text[] not null,
  resource_refs jsonb not null,
  correlation_id text not null,
  confidential boolean not null,
  expires_at timestamptz,
  created_at timestamptz not null,
  delivered_at timestamptz,
  shown_at timestamptz,
  read_at timestamptz,
  failed_passes int not null default 0,
  last_error text
);
create unique index messages_once on messages (stream_family, idempotency_key) where idempotency_key is not null;
create index messages_undelivered on messages ((failed_passes >= 10), created_at, notification_id) where delivered_at is null;
create index messages_inbox on messages (env_id, user_id, created_at desc, notification_id desc);
create index messages_unread on messages (env_id, user_id) where read_at is null and shown_at is not null;
create index messages_log on messages (env_id, created_at desc, notification_id desc);
create index messages_old on messages (created_at);

-- One row per channel, the inbox among them as `view` (NTF-036). `history` has the words of every try.
create table deliveries (
  delivery_id uuid primary key,
  notification_id uuid not null references messages on delete cascade,
  env_id uuid not null,
  channel text not null,
  gateway_id uuid,
  -- The address that a mail went to, for as long as it may come back.
  sent_to text,
  state text not null check (state in ('pending', 'delivered', 'suppressed', 'no_gateway', 'dead_lettered')),
  attempts int not null default 0,
  retries_used int not null default 0,
  next_attempt_at timestamptz,
  last_error text,
  why text not null default '',
  history jsonb not null default '[]',
  created_at timestamptz not null,
  delivered_at timestamptz,
  unique (notification_id, channel)
);
create index deliveries_due on deliveries (next_attempt_at) where state = 'pending';
create index deliveries_old on deliveries (created_at);

create table dead_letters (
  dead_letter_id uuid primary key,
  delivery_id uuid not null unique references deliveries on delete cascade,
  notification_id uuid not null,
  env_id uuid not null,
  channel text not null,
  error text not null,
  attempts int not null,
  history jsonb not null,
  failed_at timestamptz not null
);
create index dead_letters_of on dead_letters (env_id, failed_at desc, dead_letter_id desc);

-- Credentials are references; what they lead to is never here (NTF-018).
create table gateways (
  gateway_id uuid primary key,
  scope text not null check (scope in ('sys', 'org', 'env')),
  org_id uuid,
  env_id uuid,
  channel text not null,
  name text not null,
  gateway_url text,
  secret_ref text,
  config jsonb not null,
  enabled boolean not null,
  -- Written by the platform's own administrators, or in development: it may lead to private addresses.
  private_ok boolean not null,
  version int not null,
  created_at timestamptz not null,
  updated_at timestamptz not null,
  check ((scope = 'sys' and org_id is null and env_id is null) or (scope = 'org' and org_id is not null and env_id is null) or (scope = 'env' and env_id is not null))
);
create index gateways_of_env on gateways (env_id);
create index gateways_of_org on gateways (org_id) where scope = 'org';

create table templates (
  env_id uuid not null,
  key text not null,
  locale text not null,
  subject text not null,
  body text not null,
  content_type text not null,
  version int not null,
  created_at timestamptz not null,
  updated_at timestamptz not null,
  primary key (env_id, key, locale)
);

create table preferences (
  env_id uuid not null,
  user_id text not null,
  muted_categories text[] not null,
  quiet_hours jsonb not null,
  timezone text,
  updated_at timestamptz not null,
  primary key (env_id, user_id)
);

create table suppressions (
  suppression_id uuid primary key,
  env_id uuid not null,
  channel text not null,
  address text not null,
  reason text not null,
  notification_id uuid,
  created_at timestamptz not null,
  unique (env_id, channel, address)
);

-- Development: mails of environments without a gateway (F-50).
create table mailbox (
  mail_id uuid primary key,
  env_id uuid not null,
  notification_id uuid not null,
  recipient text not null,
  mail jsonb not null,
  created_at timestamptz not null
);
create index mailbox_newest on mailbox (created_at desc, mail_id desc);
