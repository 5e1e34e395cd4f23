-- Passkeys are off until an environment turns them on.
alter table realms add column passkeys boolean not null default false;

-- A credential of an authenticator: only its public half is ever known here (WebAuthn 3, section 7).
create table passkeys (
  passkey_id    uuid primary key,
  env_id        uuid not null,
  user_id       uuid not null references users on delete cascade,
  credential_id bytea not null,
  public_key    bytea not null,
  counter       bigint not null,
  transports    text[] not null,
  name          text not null,
  synced        boolean not null,
  created_at    timestamptz not null default now(),
  last_used_at  timestamptz,
  -- A counter went back: two authenticators hold the key, and nobody knows which one is the thief's.
  suspended_at  timestamptz,
  unique (env_id, credential_id)
);
create index passkeys_of on passkeys (user_id);

-- Random bytes an authenticator signs, once. For a set-up they are the person's; for a sign-in nobody is known yet.
create table passkey_challenges (
  challenge_hash bytea primary key,
  env_id         uuid not null,
  user_id        uuid references users on delete cascade,
  expires_at     timestamptz not null,
  used_at        timestamptz
);
create index passkey_challenges_age on passkey_challenges (expires_at);
