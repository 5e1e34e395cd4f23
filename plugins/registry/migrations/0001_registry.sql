-- Organizations and environments. A slug is unique among what is not archived (G-SYS-01, C34).
create table orgs (
  org_id       uuid primary key,
  slug         text not null,
  display_name text not null,
  org_domain   text not null,
  status       text not null default 'active' check (status in ('active', 'suspended', 'archived')),
  created_at   timestamptz not null default now(),
  updated_at   timestamptz not null default now(),
  version      int not null default 1
);
create unique index orgs_slug on orgs (slug) where status <> 'archived';
create index orgs_newest on orgs (created_at desc, org_id desc);

create table envs (
  env_id       uuid primary key,
  org_id       uuid not null references orgs on delete cascade,
  slug         text not null,
  display_name text not null,
  auth_domain  text unique,
  status       text not null default 'active' check (status in ('active', 'suspended', 'archived')),
  created_at   timestamptz not null default now(),
  updated_at   timestamptz not null default now(),
  version      int not null default 1
);
create unique index envs_slug on envs (org_id, slug) where status <> 'archived';
create index envs_newest on envs (org_id, created_at desc, env_id desc);

-- Slugs and hosts of what was deleted: nobody else gets them (hardening H-29).
create table tombstones (
  kind       text not null check (kind in ('org_slug', 'env_slug', 'hostname')),
  name       text not null,
  deleted_at timestamptz not null default now(),
  primary key (kind, name)
);

create table service_enablement (
  env_id     uuid not null references envs on delete cascade,
  service    text not null,
  enabled    boolean not null,
  config     jsonb not null default '{}',
  updated_at timestamptz not null default now(),
  primary key (env_id, service)
);

create table branding (
  subject_kind text not null check (subject_kind in ('org', 'env')),
  subject_id   uuid not null,
  fields       jsonb not null,
  updated_at   timestamptz not null default now(),
  primary key (subject_kind, subject_id)
);

create table verticals (
  vertical      text primary key,
  registration  jsonb not null,
  digest        text not null,
  registered_at timestamptz not null default now()
);

-- The canonical audit trail. `seq` follows commit order within the lock that assigns it, so that a page never skips a late commit (H-20).
create table audit (
  audit_id       uuid primary key,
  seq            bigint generated always as identity,
  ts             timestamptz not null,
  service        text not null,
  env_id         uuid not null,
  action         text not null,
  actor          jsonb not null,
  resource       jsonb,
  outcome        text not null check (outcome in ('success', 'denied', 'error')),
  details        jsonb,
  correlation_id text not null
);
create index audit_page on audit (env_id, ts desc, audit_id desc);
create index audit_all on audit (ts desc, audit_id desc);

-- Append-only in the database itself; retention is the one way out, and says so.
create function audit_append_only() returns trigger language plpgsql as $$
begin
  if tg_op = 'DELETE' and current_setting('platform.audit_retention', true) = 'on' then
    return old;
  end if;
  raise exception 'the audit trail is append-only';
end $$;
create trigger audit_append_only before update or delete on audit for each row execute function audit_append_only();

create table policy_sets (
  policy_set_id uuid primary key,
  env_id        uuid not null,
  service       text not null,
  name          text not null,
  origin        text not null check (origin in ('platform', 'tenant')),
  mode          text not null check (mode in ('shadow', 'enforced')),
  version       int not null default 1,
  policies      text not null,
  created_at    timestamptz not null default now(),
  updated_at    timestamptz not null default now(),
  updated_by    text not null,
  unique (env_id, service, name)
);
create table policy_relations (
  relation_id uuid primary key,
  env_id      uuid not null,
  service     text not null,
  subject     text not null,
  relation    text not null,
  object      text not null,
  unique (env_id, service, subject, relation, object)
);
create table policy_attributes (
  attribute_id uuid primary key,
  env_id       uuid not null,
  service      text not null,
  principal    text not null,
  key          text not null,
  value        jsonb not null,
  unique (env_id, service, principal, key)
);
