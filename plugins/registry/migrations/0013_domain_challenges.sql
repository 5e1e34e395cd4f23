-- Whoever proves a domain on behalf of an application chooses how: a value in TXT, or an alias that only its owner can set (G-APP-05).
alter table custom_domains add column challenge_type text not null default 'TXT' check (challenge_type in ('TXT', 'CNAME'));
alter table custom_domains add column challenge_name text;
