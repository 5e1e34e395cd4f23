-- Who may list releases of an application: the organization that was first. It outlives its listings, so that nobody else takes the name over.
create table app_slugs (
  app_slug text primary key,
  org_id   uuid not null
);

create table listings (
  listing_id             uuid primary key,
  org_id                 uuid not null,
  env_id                 uuid not null,
  owner_user_id          text not null,
  app_slug               text not null references app_slugs,
  channel                text not null,
  version                text not null,
  name                   text not null,
  summary                text not null default '',
  description            text not null default '',
  categories             jsonb not null default '[]',
  backend_url            text not null,
  dcr_supported          boolean not null default false,
  oauth_defaults         jsonb not null default '{}',
  visibility             text not null check (visibility in ('usr', 'env', 'public')),
  roles                  jsonb not null default '[]',
  default_signup_role    text,
  onboarding             jsonb not null default '[]',
  statistics_property_id uuid,
  status                 text not null default 'draft' check (status in ('draft', 'published', 'deprecated', 'archived')),
  published_at           timestamptz(3),
  created_at             timestamptz(3) not null,
  updated_at             timestamptz(3) not null,
  row_version            int not null default 1,
  constraint listings_release unique (app_slug, channel, version)
);
create index listings_newest on listings (created_at desc, listing_id desc);
create index listings_env on listings (env_id);
create index listings_installable on listings (app_slug, channel, published_at desc) where status in ('published', 'deprecated');
create index listings_property on listings (statistics_property_id) where statistics_property_id is not null;

-- Where the bytes of an image are; the bytes themselves are in object storage (APP-037).
create table listing_media (
  listing_id   uuid not null references listings on delete cascade,
  role         text not null check (role in ('icon', 'hero', 'screenshot')),
  resolution   text not null,
  storage_key  text not null,
  content_type text not null,
  sha256       text not null,
  created_at   timestamptz(3) not null,
  primary key (listing_id, role)
);

create table instances (
  instance_id            uuid primary key,
  listing_id             uuid not null,
  app_slug               text not null,
  channel                text not null,
  version                text not null,
  org_id                 uuid not null,
  env_id                 uuid not null,
  name                   text not null,
  slug                   text not null,
  -- The host it has of itself, and the one it answers on.
  default_domain         text not null,
  domain                 text not null,
  app_instance_id        uuid,
  client_id              text,
  client_id_issued_at    bigint,
  -- Sealed under the key of the contract (APP-041).
  client_secret          jsonb,
  roles                  jsonb not null default '[]',
  groups                 jsonb not null default '[]',
  statistics_property_id uuid,
  workflow_run_id        text,
  auth_url               text not null,
  public_signup          boolean not null,
  -- What the listing said when it was installed: a later change of it changes no install.
  manifest               jsonb not null,
  status                 text not null,
  last_error             text,
  -- Whether it still has its slug and anything at other services.
  open                   boolean not null default true,
  -- While somebody works at it, until this time; then another may.
  leased_until           timestamptz(3),
  created_by             text not null,
  created_at             timestamptz(3) not null,
  updated_at             timestamptz(3) not null
);
create unique index instances_slug on instances (env_id, slug) where open;
create index instances_newest on instances (env_id, created_at desc, instance_id desc);
create index instances_listing on instances (listing_id) where open;
create index instances_app on instances (app_instance_id) where app_instance_id is not null;
create index instances_run on instances (workflow_run_id) where workflow_run_id is not null;
create index instances_org on instances (org_id) where open;

-- What was done for an install, in its order: written before the call, so that a crash leaves nothing unknown behind.
create table provisioning_steps (
  instance_id uuid not null references instances on delete cascade,
  position    int not null,
  step        text not null,
  state       text not null check (state in ('doing', 'done')),
  primary key (instance_id, position)
);

create table domain_bindings (
  binding_id   uuid primary key,
  env_id       uuid not null,
  org_id       uuid not null,
  instance_id  uuid not null references instances on delete cascade,
  fqdn         text not null,
  method       text check (method in ('txt', 'cname')),
  txt_record   text not null,
  cname_token  text not null,
  cname_target text not null,
  status       text not null default 'pending' check (status in ('pending', 'verified', 'active', 'failed', 'removed')),
  attempts     int not null default 0,
  verified_at  timestamptz(3),
  last_error   text,
  created_at   timestamptz(3) not null,
  updated_at   timestamptz(3) not null
);
create unique index domain_bindings_one on domain_bindings (instance_id) where status <> 'removed';
create unique index domain_bindings_held on domain_bindings (fqdn) where status in ('verified', 'active');
create index domain_bindings_waiting on domain_bindings (updated_at) where status in ('pending', 'verified');
create index domain_bindings_fqdn on domain_bindings (fqdn);

-- How much of a minute's sums was taken over as usage, and what is on its way: an event tells the sums so far, not what was added (G-STAT-03).
create table usage_taken (
  property_id uuid not null,
  minute      timestamptz(3) not null,
  metric      text not null,
  taken       double precision not null default 0,
  under_way   double precision,
  key         text,
  touched_at  timestamptz(3) not null,
  primary key (property_id, minute, metric)
);
create index usage_taken_age on usage_taken (touched_at);
