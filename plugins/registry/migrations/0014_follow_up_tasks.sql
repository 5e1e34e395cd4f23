-- What follows a change of a tenant or a member at the identity service is a task of the kernel now. What waits is carried over.
insert into work_tasks (task_id, name, lane, key, payload, correlation_id, subject, due_at, attempts, failures, created_at)
select asked, 'followTenant', '', subject_id::text, jsonb_build_object('kind', subject_kind, 'id', subject_id, 'org_id', org_id, 'name', name),
  asked::text, 'sys', due_at, attempts, case when last_error is null then '[]' else jsonb_build_array(jsonb_build_object('at', asked_at, 'reason', last_error)) end, asked_at
from identity_follow_ups;
drop table identity_follow_ups;

insert into work_tasks (task_id, name, lane, key, payload, correlation_id, subject, due_at, created_at)
select acceptance_id, 'settleAcceptance', '', acceptance_id::text, jsonb_build_object('acceptance_id', acceptance_id), acceptance_id::text, 'sys', begun_at + interval '1 minute', begun_at
from acceptances;
drop index acceptances_oldest;

insert into work_tasks (task_id, name, lane, key, payload, correlation_id, subject, due_at, created_at)
select removal_id, 'settleRemoval', '', removal_id::text, jsonb_build_object('removal_id', removal_id, 'org_id', org_id, 'user_id', user_id, 'caller', jsonb_strip_nulls(caller), 'correlation_id', correlation_id),
  correlation_id, 'sys', begun_at + interval '1 minute', begun_at
from removals;
drop table removals;
