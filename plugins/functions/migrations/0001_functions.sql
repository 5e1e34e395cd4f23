create table modules (
  module_id       uuid primary key,
  env_id          uuid not null,
  domain          text not null,
  product         text not null,
  version_label   text not null,
  status          text not null default 'draft' check (status in ('draft', 'active', 'deprecated')),
  validated_at    timestamptz(3),
  storage_key     text not null,
  source_language text not null,
  hooks           jsonb not null,
  parameters      jsonb not null,
  wasm_hash       text not null,
  size_bytes      int not null,
  owner           text not null,
  created_at      timestamptz(3) not null,
  updated_at      timestamptz(3) not null,
  -- One content is one version (FUN-038).
  unique (env_id, domain, product, wasm_hash)
);
create index modules_newest on modules (env_id, created_at desc, module_id desc);

-- The one pointer to the active version of a product (FUN-039).
create table products (
  env_id    uuid not null,
  domain    text not null,
  product   text not null,
  module_id uuid not null references modules,
  primary key (env_id, domain, product)
);

create table executions (
  execution_id    uuid primary key,
  env_id          uuid not null,
  module_id       uuid not null,
  domain          text not null,
  product         text not null,
  hook            text not null,
  -- What the key is counted for: a module, or a product whichever version is active.
  target          text not null,
  idempotency_key text not null,
  -- False once its key may be used again.
  current         bool not null default true,
  status          text not null default 'running',
  request         jsonb not null,
  result          jsonb,
  decision        text,
  code            text,
  detail          text,
  callback        jsonb,
  attempts        int not null default 0,
  next_at         timestamptz(3),
  fuel_used       bigint not null default 0,
  memory_bytes    bigint not null default 0,
  duration_ms     float8 not null default 0,
  logs            jsonb not null default '[]',
  calls           jsonb not null default '[]',
  begun_at        timestamptz(3) not null,
  created_at      timestamptz(3) not null,
  finished_at     timestamptz(3)
);
create unique index executions_once on executions (env_id, target, hook, idempotency_key) where current;
create index executions_newest on executions (env_id, created_at desc, execution_id desc);
create index executions_dead on executions (env_id, created_at desc) where status = 'dead_lettered';
create index executions_running on executions (begun_at) where status = 'running';
create index executions_old on executions (created_at);

create table limits (
  env_id     uuid primary key,
  fuel       int not null,
  memory_mib int not null,
  timeout_ms int not null
);
