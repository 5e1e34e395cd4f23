-- Whether people of a realm sign in with a wallet (EIP-4361).
alter table realms add column wallet_sign_in text not null default 'off' check (wallet_sign_in in ('off', 'linked', 'sign_up'));

-- An address is one person's in a realm. It is kept in lower case; the checksum of EIP-55 is how it is written.
create table wallets (
  env_id    uuid not null,
  address   text not null check (address ~ '^0x[0-9a-f]{40}$'),
  user_id   uuid not null references users on delete cascade,
  linked_at timestamptz not null default now(),
  primary key (env_id, address)
);
create index wallets_user on wallets (user_id);

-- What a wallet is asked to sign. Single use is a compare-and-set on used_at (H-13); whoever asks, known or not, is asked the same.
create table wallet_challenges (
  challenge_id uuid primary key,
  env_id       uuid not null,
  address      text not null,
  message      text not null,
  context      jsonb not null default '{}',
  user_id      uuid references users on delete cascade,
  expires_at   timestamptz not null,
  used_at      timestamptz
);
create index wallet_challenges_expiry on wallet_challenges (expires_at);
create index wallet_challenges_user on wallet_challenges (user_id) where user_id is not null;
