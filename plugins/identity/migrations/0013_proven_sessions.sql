-- When the person behind a session was last seen to prove who they are; nothing where a provider did not say when that was.
alter table session_devices add column proven_at timestamptz;
