-- Applications that registered themselves (RFC 7591), by realm. Neither a secret nor a registration access token is kept, only what they hash to.
create table oauth_clients (
  env_id            uuid not null references realms on delete cascade,
  client_id         text not null,
  metadata          jsonb not null,
  secret_hash       bytea,
  registration_hash bytea not null,
  registered_by     text not null,
  created_at        timestamptz not null default now(),
  updated_at        timestamptz not null default now(),
  primary key (env_id, client_id)
);

-- What a person allowed an application, so that nobody is asked twice for the same.
create table consents (
  env_id       uuid not null,
  user_id      uuid not null references users on delete cascade,
  client_id    text not null,
  scopes       text[] not null,
  consent_flow text,
  account_ids  text[],
  granted_at   timestamptz not null default now(),
  primary key (env_id, user_id, client_id),
  foreign key (env_id, client_id) references oauth_clients on delete cascade
);
-- Accounts that were shown for one authorization: only these may be chosen from.
create table consent_offers (
  env_id      uuid not null,
  uid         text not null,
  user_id     uuid not null,
  account_ids text[] not null,
  expires_at  timestamptz not null,
  primary key (env_id, uid)
);
-- The accounts of a grant; tokens of the grant carry them.
create table grant_selections (
  grant_id    text primary key,
  account_ids text[] not null,
  expires_at  timestamptz not null
);

alter table signing_keys add column activated_at timestamptz, add column retired_at timestamptz;
update signing_keys set activated_at = created_at where state = 'current';
-- Of each algorithm one key signs and one waits: two processes that rotate at once cannot both.
create unique index signing_keys_standing on signing_keys (alg, state) where state <> 'retired';

alter table revocations drop constraint revocations_kind_check, add constraint revocations_kind_check check (kind in ('sid', 'sub', 'jti'));
