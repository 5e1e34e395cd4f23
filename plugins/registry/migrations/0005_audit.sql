-- The audit trail as a chain of hashes per environment. Who appends locks `audit_clock` last of all, so that `audit_id`, which is made
-- from its time and counter, follows commit order over every environment (H-20), and nobody waits for anybody in a circle.
drop trigger audit_append_only on audit;
drop function audit_append_only;
alter table audit rename to audit_unchained;
alter index audit_pkey rename to audit_unchained_pkey;
drop index audit_page, audit_all;

create table audit_clock (
  one boolean primary key default true check (one),
  ms  bigint not null default 0,
  n   int not null default 0
);
insert into audit_clock default values;

-- `json`, not `jsonb`: the hash covers the very text that is stored.
create table audit (
  audit_id       uuid primary key,
  position       bigint not null,
  ts             timestamptz(3) not null,
  service        text not null,
  env_id         uuid not null,
  action         text not null,
  actor          json not null,
  resource       json,
  outcome        text not null check (outcome in ('success', 'denied', 'error')),
  details        json,
  correlation_id text not null,
  occurred_at    timestamptz(3),
  delivery_key   uuid,
  hash           bytea not null
);

-- Where each chain ends. Moves forward only.
create table audit_heads (
  env_id   uuid primary key,
  position bigint not null,
  audit_id uuid not null,
  ts       timestamptz(3) not null,
  hash     bytea not null
);

-- Signed statements that a chain stood so: the last of each day, and today's, which moves along with the head.
create table audit_anchors (
  env_id    uuid not null,
  day       date not null,
  position  bigint not null,
  previous  bigint not null,
  audit_id  uuid not null,
  hash      bytea not null,
  signed_at timestamptz(3) not null,
  key_id    text not null,
  signature bytea not null,
  primary key (env_id, day)
);
create index audit_anchors_old on audit_anchors (day);

-- The signed statement up to where retention cut a chain. Moves forward only.
create table audit_cuts (
  env_id    uuid primary key,
  position  bigint not null,
  audit_id  uuid not null,
  hash      bytea not null,
  cut_at    timestamptz(3) not null,
  key_id    text not null,
  signature bytea not null
);

-- What was recorded before there was a chain is chained in its order; its id stays as the key of its delivery.
do $$
declare
  r record; last_ms bigint := 0; last_n int := 0; at_ms bigint; id uuid; prior record; body text; digest text;
begin
  for r in select * from audit_unchained order by ts, audit_id loop
    at_ms := greatest(floor(extract(epoch from r.ts) * 1000)::bigint, last_ms);
    last_n := case when at_ms = last_ms then last_n + 1 else 0 end;
    last_ms := at_ms;
    id := (lpad(to_hex(at_ms), 12, '0') || '7' || lpad(to_hex(last_n >> 14), 3, '0') || to_hex(32768 | (last_n & 16383)) || lpad(to_hex(last_n), 12, '0'))::uuid;
    select position, encode(hash, 'hex') as hash into prior from audit_heads where env_id = r.env_id;
    select string_agg(case when part is null then '-' else octet_length(part) || ':' || part end, ',' order by place) into body
      from unnest(array[r.env_id::text, (coalesce(prior.position, 0) + 1)::text, id::text, at_ms::text, r.service, r.action, r.actor::text, r.resource::text,
                        r.outcome, r.details::text, r.correlation_id, null, r.audit_id::text]) with ordinality as field(part, place);
    digest := encode(sha256(convert_to(coalesce(prior.hash, repeat('0', 64)) || body, 'UTF8')), 'hex');
    insert into audit values (id, coalesce(prior.position, 0) + 1, to_timestamp(at_ms / 1000.0), r.service, r.env_id, r.action, r.actor::text::json, r.resource::text::json,
                              r.outcome, r.details::text::json, r.correlation_id, null, r.audit_id, decode(digest, 'hex'));
    insert into audit_heads values (r.env_id, coalesce(prior.position, 0) + 1, id, to_timestamp(at_ms / 1000.0), decode(digest, 'hex'))
      on conflict (env_id) do update set position = excluded.position, audit_id = excluded.audit_id, ts = excluded.ts, hash = excluded.hash;
  end loop;
  update audit_clock set ms = last_ms, n = last_n;
end $$;
drop table audit_unchained;

-- One index for every set of filters, each ending in the order of the pages. Few services ever do one action, so a filter by action
-- alone steps over its services.
create index audit_env on audit (env_id, audit_id);
create index audit_service on audit (service, audit_id);
create index audit_env_service on audit (env_id, service, audit_id);
create index audit_action on audit (action, service, audit_id);
create index audit_env_action on audit (env_id, action, service, audit_id);
create index audit_correlation on audit (correlation_id, audit_id);
create unique index audit_delivery on audit (service, delivery_key) where delivery_key is not null;
create index audit_heads_moved on audit_heads (ts);

-- Append-only in the database itself. Behind a signed cut alone may rows and anchors go.
create function audit_append_only() returns trigger language plpgsql as $$
begin
  if tg_op = 'DELETE' and exists (select 1 from audit_cuts where env_id = old.env_id and position >= old.position) then
    return old;
  end if;
  raise exception 'the audit trail is append-only';
end $$;
create function audit_forward_only() returns trigger language plpgsql as $$
begin
  if new.env_id = old.env_id and new.position > old.position then
    return new;
  end if;
  raise exception 'the audit trail is append-only';
end $$;
create function audit_refused() returns trigger language plpgsql as $$
begin
  raise exception 'the audit trail is append-only';
end $$;
create trigger audit_append_only before update or delete on audit for each row execute function audit_append_only();
create trigger audit_kept before truncate on audit for each statement execute function audit_refused();
create trigger audit_heads_forward before update on audit_heads for each row execute function audit_forward_only();
create trigger audit_heads_kept before delete or truncate on audit_heads for each statement execute function audit_refused();
create trigger audit_anchors_forward before update on audit_anchors for each row execute function audit_forward_only();
create trigger audit_anchors_cut before delete on audit_anchors for each row execute function audit_append_only();
create trigger audit_anchors_kept before truncate on audit_anchors for each statement execute function audit_refused();
create trigger audit_cuts_forward before update on audit_cuts for each row execute function audit_forward_only();
create trigger audit_cuts_kept before delete or truncate on audit_cuts for each statement execute function audit_refused();
