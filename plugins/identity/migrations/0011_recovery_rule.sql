-- A recovery is held to the rule as it is, so it says how long it was told to wait: one that says something else, or nothing, is judged anew.
alter table account_recoveries add column wait_hours integer;
