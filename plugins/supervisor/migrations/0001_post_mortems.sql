-- What is known of processes that ended and should not have.
create table post_mortems (
  post_mortem_id uuid primary key,
  service_type   text not null,
  at             timestamptz not null,
  body           jsonb not null
);
create index post_mortems_by_service on post_mortems (service_type, at desc);
