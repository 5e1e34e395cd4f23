-- A domain outside the platform's routes nothing until its organization has shown a value in DNS (F-34). What was routed before is taken as shown.
create table domain_proofs (
  org_id      uuid not null references orgs on delete cascade,
  domain      text not null,
  txt_value   text not null,
  status      text not null default 'pending' check (status in ('pending', 'verified')),
  verified_at timestamptz,
  last_error  text,
  created_at  timestamptz not null default now(),
  primary key (org_id, domain)
);
create unique index domain_proofs_owner on domain_proofs (domain) where status = 'verified';
insert into domain_proofs (org_id, domain, txt_value, status, verified_at)
select org_id, domain, replace(gen_random_uuid()::text || gen_random_uuid()::text, '-', ''), 'verified', now()
from (select org_id, org_domain as domain from orgs where status <> 'archived'
      union select org_id, auth_domain from envs where auth_domain is not null and status <> 'archived') held
cross join (select substr(org_domain, 5) as own from orgs where slug = 'sys') platform
where domain <> own and right(domain, length(own) + 1) <> '.' || own
on conflict do nothing;
