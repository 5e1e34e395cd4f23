-- Devices an account was signed in from, by what a person recognises them by: browser and system. One that is not here is told of.
create table account_devices (
  user_id uuid not null references users on delete cascade,
  device  text not null,
  seen_at timestamptz not null,
  primary key (user_id, device)
);
create index account_devices_age on account_devices (seen_at);

-- Whoever is signed in now is not told of the device that was there before this was kept.
insert into account_devices (user_id, device, seen_at)
select u.user_id, d.device, max(d.opened_at)
from (
  select uid as sid, account_id from oidc_state where model = 'Session' and account_id is not null
  union
  select payload ->> 'sessionUid', account_id from oidc_state where model = 'RefreshToken' and account_id is not null and payload ? 'sessionUid') s
join session_devices d on d.sid = s.sid
join users u on u.user_id::text = s.account_id
group by u.user_id, d.device;
