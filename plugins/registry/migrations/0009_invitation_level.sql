-- An invitation says which level it gives (F-14); those sent before gave the middle one.
alter table invitations add column access text not null default 'admin' check (access in ('owner', 'admin', 'viewer'));
