-- What is sealed now names its key, so that a key can be changed. What was sealed before named none: keys are made again, and what waits under them is begun again.
delete from signing_keys;
delete from oidc_state where id_sealed is not null;
alter table signing_keys alter column wrapped type jsonb using null;
alter table oidc_state alter column id_sealed type jsonb using null;
