-- App instances, bindings and custom domains (G-SYS-08). `created_at` is as fine as a cursor says it (G-K-03), or a page would skip rows.
create table app_instances (
  app_instance_id   uuid primary key,
  env_id            uuid not null references envs on delete cascade,
  app_id            text not null,
  slug              text not null,
  name              text not null,
  hostname          text not null,
  oauth_client_id   text,
  feature_flags     jsonb not null default '{}',
  scope_whitelist   jsonb not null default '[]',
  service_whitelist jsonb not null default '[]',
  auth_mode         text not null check (auth_mode in ('self_service', 'group', 'open')),
  auth_group        text,
  allow_signup      boolean not null default false,
  status            text not null default 'active' check (status in ('active', 'archived')),
  created_at        timestamptz not null default date_trunc('milliseconds', now()),
  updated_at        timestamptz not null default now(),
  version           int not null default 1
);
create unique index app_instances_slug on app_instances (env_id, slug) where status = 'active';
create unique index app_instances_client on app_instances (oauth_client_id) where status = 'active';
create index app_instances_newest on app_instances (env_id, created_at desc, app_instance_id desc);

create table custom_domains (
  app_instance_id uuid primary key references app_instances on delete cascade,
  fqdn            text not null,
  txt_value       text not null,
  status          text not null default 'pending' check (status in ('pending', 'verified', 'failed')),
  verified_at     timestamptz,
  last_error      text,
  checked_at      timestamptz,
  failing_since   timestamptz
);
create index custom_domains_due on custom_domains (checked_at) where status = 'verified';

create table bindings (
  binding_id      uuid primary key,
  env_id          uuid not null references envs on delete cascade,
  app_id          text not null,
  app_instance_id uuid references app_instances on delete set null,
  slug            text not null,
  created_at      timestamptz not null default date_trunc('milliseconds', now()),
  constraint bindings_slug unique (env_id, slug)
);
create index bindings_newest on bindings (env_id, created_at desc, binding_id desc);
create index bindings_instance on bindings (app_instance_id);

-- Every host name somebody was given, once on the platform. A row whose holder is gone stays as the tombstone that keeps the name from
-- strangers (H-29): `org_id` has no foreign key, because it outlives the organization. A custom domain enters only when DNS has proven it.
create table hostnames (
  hostname        text primary key,
  org_id          uuid not null,
  kind            text not null check (kind in ('app', 'custom', 'auth')),
  env_id          uuid references envs on delete set null,
  app_instance_id uuid references app_instances on delete set null
);
create index hostnames_env on hostnames (env_id);
create index hostnames_instance on hostnames (app_instance_id);

-- Gives a name to a holder: a free one, or one its own organization no longer uses (released, or held in what was archived).
create function claim_hostname(wanted text, owner uuid, what text, env uuid, instance uuid) returns void language plpgsql as $$
begin
  insert into hostnames (hostname, org_id, kind, env_id, app_instance_id) values (wanted, owner, what, env, instance)
  on conflict (hostname) do update set kind = excluded.kind, env_id = excluded.env_id, app_instance_id = excluded.app_instance_id
    where hostnames.org_id = excluded.org_id
      and (hostnames.env_id is null
        or (hostnames.env_id = excluded.env_id and hostnames.app_instance_id is not distinct from excluded.app_instance_id)
        or exists (select 1 from envs where envs.env_id = hostnames.env_id and envs.status = 'archived'));
  if not found then
    raise unique_violation using constraint = 'hostnames_pkey', message = 'the host name belongs to somebody else';
  end if;
end $$;

-- In the database itself, so that no path into it can forget the name or free it.
create function hold_app_hostname() returns trigger language plpgsql as $$
begin
  if tg_op = 'UPDATE' then
    update hostnames set env_id = null, app_instance_id = null
    where app_instance_id = new.app_instance_id and (new.status = 'archived' or (hostname = old.hostname and new.hostname <> old.hostname));
  end if;
  if new.status = 'active' and (tg_op = 'INSERT' or new.hostname <> old.hostname) then
    perform claim_hostname(new.hostname, envs.org_id, 'app', new.env_id, new.app_instance_id) from envs where envs.env_id = new.env_id;
  end if;
  return null;
end $$;
create trigger hold_app_hostname after insert or update of hostname, status on app_instances for each row execute function hold_app_hostname();

create function hold_auth_domain() returns trigger language plpgsql as $$
begin
  if tg_op = 'UPDATE' then
    update hostnames set env_id = null where kind = 'auth' and env_id = new.env_id and (new.status = 'archived' or new.auth_domain is distinct from old.auth_domain);
  end if;
  if new.auth_domain is not null and new.status <> 'archived' and (tg_op = 'INSERT' or new.auth_domain is distinct from old.auth_domain) then
    perform claim_hostname(new.auth_domain, new.org_id, 'auth', new.env_id, null);
  end if;
  return null;
end $$;
create trigger hold_auth_domain after insert or update of auth_domain, status on envs for each row execute function hold_auth_domain();
insert into hostnames (hostname, org_id, kind, env_id)
  select auth_domain, org_id, 'auth', case when status = 'archived' then null else env_id end from envs where auth_domain is not null;

-- Applications move with their organization's domain; the former names stay the organization's.
create function move_app_hostnames() returns trigger language plpgsql as $$
begin
  update app_instances set hostname = app_instances.slug || '.' || envs.slug || '.' || new.org_domain, updated_at = now(), version = app_instances.version + 1
  from envs where envs.env_id = app_instances.env_id and envs.org_id = new.org_id and envs.status <> 'archived' and app_instances.status = 'active';
  return null;
end $$;
create trigger move_app_hostnames after update of org_domain on orgs for each row when (new.org_domain <> old.org_domain) execute function move_app_hostnames();
