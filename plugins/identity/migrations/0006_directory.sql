-- People as a directory knows them (RFC 7643). What signing in and lists need are columns; `scim_users` holds the rest as it was sent.
alter table users
  add column user_name text,
  add column external_id text,
  add column version integer not null default 1,
  add column updated_at timestamptz not null default now(),
  add column user_name_ci text not null generated always as (lower(coalesce(user_name, email))) stored;
create unique index users_user_name on users (env_id, user_name_ci);
create index users_external_id on users (env_id, external_id, user_id);
create index users_order on users (env_id, user_id);
create index users_created on users (env_id, created_at, user_id);
create index users_updated on users (env_id, updated_at, user_id);
create index user_roles_user on user_roles (user_id);

-- Whoever changes an account, a provisioner's copy of it is stale afterwards (RFC 7644, 3.14).
create function user_changed() returns trigger language plpgsql as $$
begin
  new.version := old.version + 1;
  new.updated_at := now();
  return new;
end $$;
create trigger user_changed before update on users for each row
when ((old.email, old.display_name, old.status, old.user_name, old.external_id) is distinct from (new.email, new.display_name, new.status, new.user_name, new.external_id))
execute function user_changed();

create table scim_users (
  user_id    uuid primary key references users on delete cascade,
  attributes jsonb not null
);

-- What this service recorded lately, for when the registry's trail does not answer. Written where the trail's own copy is, so that neither has a row the other lacks.
create table own_audit (
  audit_id uuid primary key,
  ts       timestamptz not null,
  env_id   uuid not null,
  action   text not null,
  entry    jsonb not null
);
create index own_audit_env on own_audit (env_id, audit_id);
create index own_audit_age on own_audit (ts);
create index own_audit_correlation on own_audit ((entry ->> 'correlation_id'));
create function keep_own_audit() returns trigger language plpgsql as $$
begin
  insert into own_audit (audit_id, ts, env_id, action, entry)
  values (new.id, new.created_at, new.env_id, new.payload ->> 'action', new.payload || jsonb_build_object('correlation_id', new.correlation_id));
  return null;
end $$;
create trigger keep_own_audit after insert on outbox for each row when (new.event_type = 'audit') execute function keep_own_audit();
