-- The life of every service of a vertical, from the folder that was found to the one that left. A row that is gone stays: somebody took
-- the service out (`withdrawn`), and nobody but a person brings it back.
create table vertical_services (
  service   text primary key,
  vertical  text not null,
  label     text not null default '',
  version   text not null default '',
  life      text not null check (life in ('known', 'enabled', 'draining', 'gone')),
  withdrawn boolean not null default false,
  since     timestamptz not null default now()
);
create index vertical_services_leaving on vertical_services (since) where life = 'draining';

insert into vertical_services (service, vertical, life, since)
select distinct on (service) service, vertical, 'enabled', registered_at
from verticals, unnest(services) service
where vertical <> 'platform';
