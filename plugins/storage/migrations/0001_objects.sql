-- What is stored, by key. The bytes lie under an id of their own, which is never written twice: a key moves to new bytes in one statement.
create table objects (
  key          text collate "C" primary key,
  owner        text not null,
  env_id       uuid,
  blob_id      uuid not null unique,
  size         bigint not null,
  sha256       text not null,
  content_type text not null,
  created_at   timestamptz(3) not null,
  updated_at   timestamptz(3) not null
);
create index objects_of_environment on objects (env_id) where env_id is not null;
create index objects_of_owner on objects (owner);

-- Bytes that no key leads to any more: whoever takes the row away, the end of an environment too.
create table dropped (
  blob_id    uuid primary key,
  size       bigint not null,
  dropped_at timestamptz(3) not null default now()
);
create function drop_bytes() returns trigger language plpgsql as $$
begin
  insert into dropped (blob_id, size) values (old.blob_id, old.size) on conflict do nothing;
  return null;
end $$;
create trigger bytes_dropped after delete on objects for each row execute function drop_bytes();
create trigger bytes_replaced after update of blob_id on objects for each row when (old.blob_id <> new.blob_id) execute function drop_bytes();

-- How far the last sweep came, and what it found: one row.
create table sweeps (
  only_one  bool primary key default true check (only_one),
  swept_at  timestamptz(3) not null,
  looked_at int not null,
  removed   int not null,
  bytes     bigint not null
);
