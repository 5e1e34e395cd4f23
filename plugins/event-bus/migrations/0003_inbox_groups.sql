-- What was committed together stays together: one row per group of events, one slim row per key. A row and an update of its own for each
-- event made the database most of the cost of a batch.

-- `events` is JSON: what all rows have in `shared`, the rest of each, as they were accepted, in `rows`. `keys` and `positions` are those
-- of them that were new, the others are copies of what another group holds. `attempt` fences whoever appends the group: what comes with an older number counts for nothing.
-- Until `append_by` it is that process's; afterwards the relay, or the next copy of a request, takes it over.
create table event_groups (
  id uuid primary key,
  events text not null,
  keys uuid[] not null,
  positions int[] not null,
  append_by timestamptz not null,
  attempt int not null default 1,
  -- The entry of each event on its stream, by position in `events`, empty where there is none; all are there when `done_at` is set.
  message_ids text[],
  done_at timestamptz
);
-- Out of line and not compressed: an update of the state leaves the events where they are.
alter table event_groups alter column events set storage external;
create index event_groups_open on event_groups (id) where done_at is null;
create index event_groups_done on event_groups (done_at) where done_at is not null;

-- The first 16 bytes of SHA-256 over environment, subject and idempotency key.
create table event_keys (
  key uuid primary key,
  group_id uuid not null,
  position int not null
);

insert into event_groups (id, events, keys, positions, append_by, attempt, message_ids, done_at)
select id,
  json_build_object('shared', json_build_object(), 'rows', json_build_array(json_strip_nulls(json_build_object('id', id, 'env', env_id, 'family', stream_family,
    'event_type', event_type, 'payload', payload, 'created_at', created_at,
    'produced_at', to_char(produced_at at time zone 'utc', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"'), 'produced_by', produced_by,
    'publisher_subject', sub, 'publisher_id_token', publisher_id_token, 'correlation_id', correlation_id, 'idempotency_key', idempotency_key))))::text,
  array[left(encode(sha256(convert_to(env_id || E'\n' || sub || E'\n' || idempotency_key, 'UTF8')), 'hex'), 32)::uuid],
  array[0], append_by, attempt, case when message_id is null then null else array[message_id] end, relayed_at
from event_inbox;
insert into event_keys (key, group_id, position) select keys[1], id, 0 from event_groups;
drop table event_inbox;

-- For people: the bus itself reads groups.
create view event_inbox as
select (row ->> 'id')::uuid as id, g.id as group_id, (row ->> 'env')::uuid as env_id, row ->> 'publisher_subject' as sub, row ->> 'idempotency_key' as idempotency_key,
  row ->> 'event_type' as event_type, row ->> 'family' as stream_family, row ->> 'payload' as payload, nullif(g.message_ids[p.position + 1], '') as message_id, g.done_at as relayed_at
from event_groups g cross join lateral unnest(g.positions) p(position)
  cross join lateral (select g.events::jsonb -> 'shared' || (g.events::jsonb -> 'rows' -> p.position)) r(row);

-- The journal, too: what was done between two commits is one row, and what was said of several messages is said once.
alter table audit_journal rename to audit_entries;
create table audit_pages (
  id bigint generated always as identity primary key,
  at timestamptz not null,
  entries text not null
);
insert into audit_pages (at, entries)
select max(at), json_agg(json_build_object('at', at, 'action', action, 'sub', sub, 'env_id', env_id, 'stream_family', stream_family, 'event_type', event_type,
  'message_ids', json_build_array(message_id), 'outcome', outcome, 'correlation_id', correlation_id) order by id)::text
from audit_entries group by id / 1000;
drop table audit_entries;
alter table audit_pages alter column entries set storage external;
create index audit_pages_at on audit_pages (at);
create view audit_journal as
select p.id as page_id, p.at as page_at, e.at, e.action, e.sub, e.env_id, e.stream_family, e.event_type, m.message_id, e.outcome, e.correlation_id
from audit_pages p cross join lateral json_to_recordset(p.entries::json)
    e(at timestamptz, action text, sub text, env_id uuid, stream_family text, event_type text, message_ids json, outcome text, correlation_id text)
  cross join lateral json_array_elements_text(e.message_ids) m(message_id);
