-- Where people of an environment sign in. The system environment's realm is a constant and still a row.
create table realms (
  env_id uuid primary key,
  org_id uuid not null,
  host   text not null unique
);

create table users (
  user_id              uuid primary key,
  env_id               uuid not null,
  email                text not null,
  email_ci             text not null,
  email_verified       boolean not null default false,
  display_name         text,
  status               text not null default 'active' check (status in ('active', 'locked', 'disabled')),
  must_change_password boolean not null default false,
  created_at           timestamptz not null default now(),
  last_sign_in_at      timestamptz,
  unique (env_id, email_ci)
);
create table passwords (
  user_id    uuid primary key references users on delete cascade,
  hash       text not null,
  changed_at timestamptz not null default now()
);

-- One-time steps between two pages. Single use is a compare-and-set on used_at (H-13).
create table step_tokens (
  token_hash bytea primary key,
  kind       text not null,
  user_id    uuid not null references users on delete cascade,
  uid        text,
  expires_at timestamptz not null,
  used_at    timestamptz
);

-- The access model. Natural keys make every verb idempotent (IDN).
create table roles (
  env_id      uuid not null,
  name        text not null,
  description text,
  primary key (env_id, name)
);
create table role_scopes (
  env_id uuid not null,
  role   text not null,
  scope  text not null,
  primary key (env_id, role, scope),
  foreign key (env_id, role) references roles on delete cascade
);
create table role_nesting (
  env_id uuid not null,
  role   text not null,
  child  text not null,
  primary key (env_id, role, child),
  foreign key (env_id, role) references roles on delete cascade,
  foreign key (env_id, child) references roles on delete cascade
);
create table user_groups (
  group_id    uuid not null unique,
  env_id      uuid not null,
  name        text not null,
  description text,
  primary key (env_id, name)
);
create table group_roles (
  env_id     uuid not null,
  group_name text not null,
  role       text not null,
  primary key (env_id, group_name, role),
  foreign key (env_id, group_name) references user_groups on delete cascade,
  foreign key (env_id, role) references roles on delete cascade
);
create table group_members (
  env_id     uuid not null,
  group_name text not null,
  user_id    uuid not null references users on delete cascade,
  joined_at  timestamptz not null default now(),
  primary key (env_id, group_name, user_id),
  foreign key (env_id, group_name) references user_groups on delete cascade
);
create index group_members_user on group_members (user_id);
-- Members of the child count as members of the group; the two may live in different realms (G-SYS-03).
create table group_nesting (
  env_id       uuid not null,
  group_name   text not null,
  child_env_id uuid not null,
  child_group  text not null,
  primary key (env_id, group_name, child_env_id, child_group),
  foreign key (env_id, group_name) references user_groups on delete cascade,
  foreign key (child_env_id, child_group) references user_groups (env_id, name) on delete cascade
);
create index group_nesting_child on group_nesting (child_env_id, child_group);
create table user_roles (
  env_id  uuid not null,
  user_id uuid not null references users on delete cascade,
  role    text not null,
  primary key (env_id, user_id, role),
  foreign key (env_id, role) references roles on delete cascade
);

-- What verticals grant to the built-in environment roles, and what their workloads may do.
create table vertical_grants (
  vertical text not null,
  scope    text not null,
  grants   text not null check (grants in ('read', 'write', 'admin')),
  primary key (vertical, scope)
);
create table workloads (
  name     text primary key,
  vertical text not null,
  scopes   text[] not null
);

create table signing_keys (
  kid        text primary key,
  alg        text not null,
  public_jwk jsonb not null,
  wrapped    bytea not null,
  state      text not null check (state in ('next', 'current', 'retired')),
  created_at timestamptz not null default now()
);

-- State of the protocol. Ids are stored hashed; the encrypted copy is for the look-ups by uid.
create table oidc_state (
  env_id      uuid not null,
  model       text not null,
  id_hash     bytea not null,
  id_sealed   bytea,
  payload     jsonb not null,
  grant_id    text,
  account_id  text,
  uid         text,
  user_code   text,
  consumed_at timestamptz,
  created_at  timestamptz not null default now(),
  expires_at  timestamptz,
  primary key (env_id, model, id_hash)
);
create index oidc_state_grant on oidc_state (grant_id) where grant_id is not null;
create index oidc_state_uid on oidc_state (model, uid) where uid is not null;
create index oidc_state_account on oidc_state (model, account_id) where account_id is not null;
create index oidc_state_session on oidc_state ((payload ->> 'sessionUid')) where payload ? 'sessionUid';
create index oidc_state_expiry on oidc_state (expires_at);

-- Revocations outlive the key-value store's memory (day-one, Processes).
create table revocations (
  kind       text not null check (kind in ('sid', 'sub')),
  value      text not null,
  expires_at timestamptz not null,
  published  boolean not null default false,
  primary key (kind, value)
);
