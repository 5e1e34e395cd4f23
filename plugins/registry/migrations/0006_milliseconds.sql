-- A cursor says milliseconds, as everything on the wire does: what pages are ordered by is no finer (G-K-04), or a page would skip rows.
alter table orgs alter column created_at type timestamptz(3);
alter table envs alter column created_at type timestamptz(3);
alter table creations alter column started_at type timestamptz(3);
alter table identity_follow_ups alter column asked_at type timestamptz(3);
