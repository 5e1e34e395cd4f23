create table loans (
  loan_id      uuid primary key,
  env_id       uuid not null,
  applicant    text not null,
  amount_minor bigint not null check (amount_minor > 0),
  state        text not null default 'applied' check (state in ('applied', 'approved', 'declined', 'frozen')),
  decided_by   text,
  created_at   timestamptz not null default now()
);
create index loans_newest on loans (env_id, loan_id desc);
