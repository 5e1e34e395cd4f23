-- A create under way: the record stands, its event is held, its access model may not be there yet (registry rules 3 and 5, C9).
create table creations (
  subject_kind   text not null check (subject_kind in ('org', 'env')),
  subject_id     uuid not null,
  org_id         uuid not null references orgs on delete cascade deferrable initially deferred,
  caller         jsonb not null,
  correlation_id text not null,
  started_at     timestamptz not null default now(),
  primary key (subject_kind, subject_id)
);
create index creations_oldest on creations (started_at);

-- What the identity service has still to be told of a tenant that changed, was archived or is gone. One row a tenant: the newest state is what counts.
create table identity_follow_ups (
  subject_kind text not null check (subject_kind in ('org', 'env')),
  subject_id   uuid not null,
  org_id       uuid not null,
  name         text not null,
  asked        uuid not null,
  asked_at     timestamptz not null default now(),
  due_at       timestamptz not null default now(),
  attempts     int not null default 0,
  last_error   text,
  primary key (subject_kind, subject_id)
);
create index identity_follow_ups_due on identity_follow_ups (due_at);

-- Two organizations never hold one domain; what is archived holds none (C34).
create unique index orgs_domain on orgs (org_domain) where status <> 'archived';

-- Names alone, for questions that must not read whole registrations.
alter table verticals add column services text[] not null default '{}';
update verticals set services = array(select entry->>'service' from jsonb_array_elements(registration->'services') entry);
