-- Whether people of a realm confirm their e-mail address before they sign in.
alter table realms add column verify_email boolean not null default true;

-- A step is known to its browser by the token and to a page by its id; it remembers what was proven, what the page carries on, and how often a code was tried.
alter table step_tokens
  add column step_id uuid not null default gen_random_uuid() unique,
  add column amr text[] not null default '{}',
  add column context jsonb not null default '{}',
  add column tries integer not null default 0,
  drop column uid;
create index step_tokens_user on step_tokens (user_id);
create index step_tokens_expiry on step_tokens (expires_at);

-- What people ask for at the pages without being signed in. It is written down the same way whoever asks, and looked into afterwards (IDN-007).
create table account_requests (
  request_id uuid primary key,
  env_id     uuid not null,
  kind       text not null check (kind in ('sign_up', 'password_reset', 'email_verification')),
  sealed     jsonb not null,
  run_at     timestamptz not null default now(),
  created_at timestamptz not null default now()
);
create index account_requests_due on account_requests (run_at);

-- Mail waits here until the notification service has taken it: with it the token of a link, sealed, and then erased.
create table mail_queue (
  mail_id       uuid primary key,
  sealed        jsonb not null,
  attempts      integer not null default 0,
  last_error    text,
  next_retry_at timestamptz not null,
  created_at    timestamptz not null
);
create index mail_queue_due on mail_queue (next_retry_at);

-- The authenticator app of a person: begun, then confirmed with a code. The last accepted step makes every code work once (RFC 6238, 5.2).
create table authenticators (
  user_id      uuid primary key references users on delete cascade,
  sealed       jsonb not null,
  last_step    bigint not null default 0,
  begun_at     timestamptz not null default now(),
  confirmed_at timestamptz
);
create table recovery_codes (
  user_id   uuid not null references users on delete cascade,
  code_hash bytea not null,
  used_at   timestamptz,
  primary key (user_id, code_hash)
);

-- What a session was begun with, in a few words, for the person who looks at the own devices.
create table session_devices (
  sid       text primary key,
  device    text not null,
  opened_at timestamptz not null default now()
);
create index session_devices_age on session_devices (opened_at);

-- Roles that somebody gets by signing up into a group (the app store's default_signup_role).
create table sign_up_roles (
  env_id     uuid not null,
  group_name text not null,
  role       text not null,
  primary key (env_id, group_name, role),
  foreign key (env_id, group_name) references user_groups on delete cascade,
  foreign key (env_id, role) references roles on delete cascade
);
