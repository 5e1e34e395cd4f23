-- Administrators and viewers of an organization have that level in its environments, as its owners own them (F-14). What was made before
-- has the nesting of the owners alone; the other two levels follow it.
insert into group_nesting (env_id, group_name, child_env_id, child_group)
select above.env_id, above.name, below.env_id, below.name
from group_nesting n cross join (values ('admins'), ('viewers')) level(plural)
join user_groups above on above.env_id = n.env_id and above.name = regexp_replace(n.group_name, ':owners$', ':' || level.plural)
join user_groups below on below.env_id = n.child_env_id and below.name = regexp_replace(n.child_group, ':owners$', ':' || level.plural)
where n.group_name like 'platform:env:%:owners' and n.child_group like 'platform:org:%:owners'
on conflict do nothing;
