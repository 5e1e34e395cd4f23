-- Answers that waited on purpose have no time, and weigh nothing in a median (G-STAT-04). A process of the release before writes none.
alter table traffic add column waited integer not null default 0;
