import type { ProblemDecl } from '@platform/sdk/contract';

/** Every refusal of the bus. */
export const problems = {
  invalid_event_type: { status: 400, title: 'Not an event name', retry: 'never' },
  invalid_stream_family: { status: 400, title: 'Not a stream family', retry: 'never' },
  payload_not_object: { status: 400, title: 'The payload must be a JSON object', retry: 'never' },
  payload_too_large: { status: 413, title: 'The payload is too large', retry: 'never' },
  invalid_event: { status: 400, title: 'The event does not fit its schema', retry: 'never' },
  batch_size: { status: 400, title: 'A batch has 1 to 100 events', retry: 'never' },
  env_required: { status: 400, title: 'env_id is missing', retry: 'never' },
  message_ids_required: { status: 400, title: 'Name at least one message', retry: 'never' },
  deliver_at_too_far: { status: 400, title: 'The time of delivery is too far away', retry: 'never' },
  env_mismatch: { status: 403, title: 'This environment is not open to the caller', retry: 'never' },
  event_ownership: { status: 403, title: 'The event belongs to another vertical', retry: 'never' },
  env_suspended: { status: 403, title: 'The environment is suspended', retry: 'never' },
  m2m_only: { status: 403, title: 'Only workloads may do this', retry: 'never' },
  unknown_dead_letter: { status: 404, title: 'No such dead letter', retry: 'never' },
  unknown_schedule: { status: 404, title: 'No such delayed event', retry: 'never' },
  schedule_delivered: { status: 409, title: 'The delayed event was delivered already', retry: 'never' },
  key_published: { status: 409, title: 'An event was published under this key already', retry: 'never' },
  bad_schema: { status: 400, title: 'The schema of an event cannot be used', retry: 'never' },
  too_many_streams: { status: 400, title: 'Too many streams to sort by size', retry: 'never' },
  rate_limited: { status: 429, title: 'Too many events for this environment', retry: 'later' },
  inbox_failed: { status: 500, title: 'The event could not be stored', retry: 'later', log: 'error' },
  append_failed: { status: 500, title: 'The event is stored, and could not be appended yet', retry: 'later', log: 'warn' },
  append_pending: { status: 503, title: 'The first copy of this event is being appended', retry: 'later' },
  overloaded: { status: 503, title: 'Too many events wait to be stored', retry: 'later', log: 'warn' },
} as const satisfies Readonly<Record<string, ProblemDecl>>;
