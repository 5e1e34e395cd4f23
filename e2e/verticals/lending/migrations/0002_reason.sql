alter table loans add column reason text;
