-- The tenant that a row of the shared, system environment is about: the organization it names, else the organization or environment that it
-- changed. People see the rows about their own tenants, found by this index (D-01). A text with an escape that Postgres cannot hold is
-- about nobody: such a row must be stored all the same.
create function audit_about(resource json, details json) returns text language sql immutable parallel safe as $$
  select coalesce(
    case when strpos(details::text, '\u') = 0 then details->>'org_id' end,
    case when strpos(resource::text, '\u') = 0 and resource->>'type' in ('org', 'env') then resource->>'id' end)
$$;
create index audit_tenant on audit (env_id, audit_about(resource, details), audit_id) where audit_about(resource, details) is not null;
