-- How often a request of the sign-in pages was tried. One that keeps failing comes up more and more rarely, and is parked in the end (F-19).
alter table account_requests add column attempts integer not null default 0;
