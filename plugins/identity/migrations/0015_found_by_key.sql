-- What is looked up by another name than its id belongs to an environment, and is listed in it.
drop index oidc_state_uid;
create index oidc_state_uid on oidc_state (env_id, model, uid) where uid is not null;
create index oidc_state_user_code on oidc_state (env_id, model, user_code) where user_code is not null;

-- What verifiers were not told of yet, of all that was ever revoked and has not expired.
create index revocations_unpublished on revocations (kind, value) where not published;
