-- Keys that sign the trail, in their order. Each is introduced by the one before it and says itself which one that was.
create table audit_keys (
  seq         int primary key,
  key_id      text not null unique,
  public_key  text not null,
  since       timestamptz(3) not null,
  by_previous text,
  by_itself   text not null
);
create trigger audit_keys_kept before update or delete or truncate on audit_keys for each statement execute function audit_refused();

-- What was signed lately, for whoever takes note of it outside this database.
create index audit_anchors_signed on audit_anchors (signed_at, env_id);

-- The same statement may be signed again by another key; otherwise it moves forward only.
create function audit_forward_or_confirmed() returns trigger language plpgsql as $$
begin
  if new.env_id = old.env_id and (new.position > old.position or (new.position = old.position and new.hash = old.hash and new.key_id <> old.key_id)) then
    return new;
  end if;
  raise exception 'the audit trail is append-only';
end $$;
drop trigger audit_anchors_forward on audit_anchors;
drop trigger audit_cuts_forward on audit_cuts;
create trigger audit_anchors_forward before update on audit_anchors for each row execute function audit_forward_or_confirmed();
create trigger audit_cuts_forward before update on audit_cuts for each row execute function audit_forward_or_confirmed();
