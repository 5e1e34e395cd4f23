-- What people asked for at the sign-in pages is a task of the kernel now; what waits is carried over, and what was parked lies with the dead.
insert into work_tasks (task_id, name, lane, payload, correlation_id, subject, state, due_at, attempts, created_at, ended_at)
select request_id, 'answer', env_id::text, jsonb_build_object('request_id', request_id, 'env_id', env_id, 'kind', kind, 'sealed', sealed),
  request_id::text, 'auth', case when run_at = 'infinity' then 'dead' else 'waiting' end, least(run_at, now()), attempts, created_at,
  case when run_at = 'infinity' then created_at end
from account_requests;
drop table account_requests;
