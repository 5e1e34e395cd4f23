-- Roles and memberships have ids, so that those of a fresh platform are the same on every installation (G-SYS-04).
alter table roles add column role_id uuid not null default gen_random_uuid() unique;
alter table group_members add column membership_id uuid not null default gen_random_uuid() unique;

update roles set role_id = '00000000-0000-7000-8000-000000000005'
where env_id = '00000000-0000-7000-8000-000000000002' and name = 'platform:console:user';
update group_members set membership_id = '00000000-0000-7000-8000-000000000006'
where env_id = '00000000-0000-7000-8000-000000000002' and group_name = 'platform:console:users' and user_id = '00000000-0000-7000-8000-000000000007';
