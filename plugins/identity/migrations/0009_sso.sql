-- The OpenID provider of a realm's own organization; one, where somebody set it up. The client secret is sealed.
create table upstream_providers (
  env_id        uuid primary key references realms on delete cascade,
  issuer        text not null,
  client_id     text not null,
  client_secret jsonb not null,
  label         text not null,
  allow_sign_up boolean not null,
  updated_at    timestamptz not null default now()
);
-- A way there and back. State and browser are kept as hashes, nonce and verifier sealed.
create table upstream_flows (
  state_hash   bytea primary key,
  browser_hash bytea not null,
  env_id       uuid not null references realms on delete cascade,
  secrets      jsonb not null,
  context      jsonb not null,
  expires_at   timestamptz not null,
  used_at      timestamptz
);
create index upstream_flows_age on upstream_flows (expires_at);
-- Who somebody is there (OpenID Connect Core 5.7: issuer and subject, never the e-mail address).
create table upstream_identities (
  env_id    uuid not null references realms on delete cascade,
  issuer    text not null,
  subject   text not null,
  user_id   uuid not null references users on delete cascade,
  linked_at timestamptz not null default now(),
  primary key (env_id, issuer, subject)
);
create index upstream_identities_of on upstream_identities (user_id);
