-- Invitations. The token is in the mail alone; here is its SHA-256 (G-SYS-07).
create table invitations (
  invitation_id uuid primary key,
  org_id        uuid not null references orgs on delete cascade,
  email         text not null,
  token_hash    bytea not null unique,
  status        text not null default 'pending' check (status in ('pending', 'accepted', 'revoked')),
  expires_at    timestamptz not null,
  created_at    timestamptz not null,
  created_by    text not null,
  accepted_at   timestamptz,
  accepted_by   text
);
create unique index invitations_pending on invitations (org_id, lower(email)) where status = 'pending';
create index invitations_newest on invitations (org_id, created_at desc, invitation_id desc);

-- An acceptance that has begun: committed before the identity service is asked, gone with the acceptance's own commit.
-- What is left tells that a person may be in the group without an accepted invitation (C7).
create table acceptances (
  acceptance_id uuid primary key,
  invitation_id uuid not null references invitations on delete cascade,
  org_id        uuid not null,
  user_id       text not null,
  begun_at      timestamptz not null
);
create index acceptances_oldest on acceptances (begun_at);

-- A removal that has begun: what is left may have happened at the identity service without being told here.
create table removals (
  removal_id     uuid primary key,
  org_id         uuid not null references orgs on delete cascade,
  user_id        text not null,
  caller         jsonb not null,
  correlation_id text not null,
  begun_at       timestamptz not null
);
create index removals_oldest on removals (begun_at);

-- Mail that waits for the notification service. The whole message is sealed: it carries an address and a token.
create table mail_queue (
  mail_id       uuid primary key,
  org_id        uuid not null references orgs on delete cascade,
  invitation_id uuid not null references invitations on delete cascade,
  sealed        jsonb not null,
  attempts      int not null default 0,
  last_error    text,
  next_retry_at timestamptz not null,
  created_at    timestamptz not null
);
create index mail_queue_due on mail_queue (next_retry_at);
