import type { ProblemDecl } from '@platform/sdk/contract';

export const problems = {
  handler_denied: { status: 403, title: 'A service registers itself, for domains of its own', retry: 'never' },
  domain_taken: { status: 409, title: 'Another service answers the steps of this domain', retry: 'never' },
  domain_unregistered: { status: 409, title: 'No service answers the steps of this workflow yet', retry: 'later' },
  unknown_workflow: { status: 400, title: 'There is no such workflow', retry: 'never' },
  unknown_step_kind: { status: 400, title: 'Nobody answers steps of this kind', retry: 'never' },
  input_refused: { status: 400, title: 'The input does not fit the workflow', retry: 'never' },
  input_too_large: { status: 413, title: 'The input is too large', retry: 'never' },
  run_denied: { status: 403, title: 'This workflow is started by another service', retry: 'never' },
  key_reused: { status: 409, title: 'The key stands for another run', retry: 'never' },
  too_many_runs: { status: 429, title: 'Too many runs are under way in this environment', retry: 'later' },
  run_not_found: { status: 404, title: 'No such run', retry: 'never' },
  run_finished: { status: 409, title: 'The run has ended', retry: 'never' },
  step_not_found: { status: 404, title: 'No such step', retry: 'never' },
  step_not_waiting: { status: 409, title: 'The step waits for no decision', retry: 'never' },
  decided_otherwise: { status: 409, title: 'It was decided otherwise', retry: 'never' },
  decision_denied: { status: 403, title: 'The decision is somebody else’s', retry: 'never' },
} as const satisfies Readonly<Record<string, ProblemDecl>>;
