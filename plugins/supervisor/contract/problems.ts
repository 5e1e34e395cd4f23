import type { ProblemDecl } from '@platform/sdk/contract';

export const problems = {
  instance_not_found: { status: 404, title: 'There is no such instance', retry: 'never' },
  self_target: { status: 409, title: 'The supervisor does not act on itself', retry: 'never' },
  upgrade_in_progress: { status: 409, title: 'An upgrade of this service is running', retry: 'later' },
  no_upgrade: { status: 409, title: 'No upgrade of this service is running', retry: 'never' },
  last_active_instance: { status: 409, title: 'It is the last active instance of its service', retry: 'never' },
  unknown_action: { status: 400, title: 'There is no such action', retry: 'never' },
  unknown_service_type: { status: 400, title: 'The catalog does not have this service', retry: 'never' },
  unknown_release: { status: 400, title: 'There is no such release', retry: 'never' },
  placement_refused: { status: 409, title: 'The service may not start on this machine', retry: 'never' },
  invalid_placement: { status: 422, title: 'A placement key means nothing', retry: 'never' },
  builtin_entry: { status: 409, title: 'The line is built in', retry: 'never' },
  elsewhere: { status: 409, title: 'The instance lives on another machine', retry: 'never' },
  start_failed: { status: 500, title: 'The service could not be started', retry: 'later' },
  channel_restricted: { status: 403, title: 'This channel starts instances and does nothing else', retry: 'never' },
  pending_not_found: { status: 404, title: 'Nothing waits for this decision', retry: 'never' },
} as const satisfies Readonly<Record<string, ProblemDecl>>;
