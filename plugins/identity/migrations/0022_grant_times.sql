-- What a service that is gone held is taken back; what its successor of the same name was given since then is not.
alter table workloads add column updated_at timestamptz not null default now();
alter table vertical_grants add column updated_at timestamptz not null default now();
