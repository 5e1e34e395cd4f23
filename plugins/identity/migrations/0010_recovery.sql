-- Account recovery is off until an environment turns it on, and says what stands between the proven address and a new password.
alter table realms
  add column account_recovery text not null default 'off' check (account_recovery in ('off', 'wait', 'approval', 'wait_and_approval')),
  add column recovery_wait_hours integer not null default 72 check (recovery_wait_hours between 24 and 720);

alter table account_requests
  drop constraint account_requests_kind_check,
  add constraint account_requests_kind_check check (kind in ('sign_up', 'password_reset', 'email_verification', 'account_recovery'));

-- The language of somebody's mail: of the page last used, or as a directory says.
alter table users add column locale text check (locale ~ '^[a-z]{2,3}$');

-- Life: asked → waiting → offered → completed; every state before the last may end as refused, cancelled or expired. Each move is a compare-and-set (H-13).
create table account_recoveries (
  recovery_id    uuid primary key,
  env_id         uuid not null,
  user_id        uuid not null references users on delete cascade,
  status         text not null default 'asked' check (status in ('asked', 'waiting', 'offered', 'completed', 'refused', 'cancelled', 'expired')),
  -- Of the tokens in its mails the hashes are kept. The one that cancels stands in each mail, so it is kept sealed until the end.
  confirm_hash   bytea,
  finish_hash    bytea,
  cancel_hash    bytea not null,
  cancel_sealed  jsonb,
  device         text,
  needs_approval boolean not null default false,
  wait_until     timestamptz,
  decided_by     uuid,
  decided_at     timestamptz,
  approved       boolean not null default false,
  reason         text,
  created_at     timestamptz not null default now(),
  confirmed_at   timestamptz,
  expires_at     timestamptz not null,
  ended_at       timestamptz
);
create unique index account_recoveries_open on account_recoveries (user_id) where status in ('asked', 'waiting', 'offered');
create index account_recoveries_confirm on account_recoveries (confirm_hash) where confirm_hash is not null;
create index account_recoveries_finish on account_recoveries (finish_hash) where finish_hash is not null;
create index account_recoveries_cancel on account_recoveries (cancel_hash);
create index account_recoveries_env on account_recoveries (env_id, recovery_id) where confirmed_at is not null;
create index account_recoveries_due on account_recoveries (expires_at) where status in ('asked', 'waiting', 'offered');
