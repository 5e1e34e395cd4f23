-- Whoever is in a group of an organization or environment in the system's realm may enter the console, whose gate is its group (D-02).
-- What is provisioned from now on is nested when it is made.
insert into group_nesting (env_id, group_name, child_env_id, child_group)
select gate.env_id, gate.name, tenant.env_id, tenant.name
from user_groups gate join user_groups tenant on tenant.env_id = gate.env_id
where gate.name = 'platform:console:users' and tenant.name ~ '^platform:(org|env):[0-9a-f-]{36}:(owners|admins|viewers)$'
on conflict do nothing;
