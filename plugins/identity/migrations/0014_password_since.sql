-- Since when an account's password is the one it is: on the account's own row, so that a sign-in can ask for it and hold the row in one statement.
alter table users add column password_since timestamptz;
update users set password_since = passwords.changed_at from passwords where passwords.user_id = users.user_id;

create function note_password() returns trigger language plpgsql as $$
begin
  if tg_op = 'DELETE' then
    update users set password_since = null where user_id = old.user_id;
  else
    update users set password_since = new.changed_at where user_id = new.user_id;
  end if;
  return null;
end $$;
create trigger password_noted after insert or update of changed_at or delete on passwords for each row execute function note_password();
