-- Tokens of an application that is not the tenant's own name the grant they came from, by its hash: taken back, it ends them all.
alter table revocations drop constraint revocations_kind_check, add constraint revocations_kind_check check (kind in ('sid', 'sub', 'jti', 'gid'));
