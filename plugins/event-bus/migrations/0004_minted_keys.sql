-- A key that the bus minted says itself where its event lies, and has no row in event_keys: the database's part of such an event was mostly that row.
create or replace view event_inbox as
select (row ->> 'id')::uuid as id, g.id as group_id, (row ->> 'env')::uuid as env_id, row ->> 'publisher_subject' as sub,
  coalesce(nullif(row ->> 'idempotency_key', ''), g.id || '.' || p.position) as idempotency_key,
  row ->> 'event_type' as event_type, row ->> 'family' as stream_family, row ->> 'payload' as payload, nullif(g.message_ids[p.position + 1], '') as message_id, g.done_at as relayed_at
from event_groups g cross join lateral unnest(g.positions) p(position)
  cross join lateral (select g.events::jsonb -> 'shared' || (g.events::jsonb -> 'rows' -> p.position)) r(row);
