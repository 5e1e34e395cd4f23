import { get, Id, Page, PageQuery, post, put, Type } from '@platform/sdk/contract';
import { Domain } from './step.ts';
import { Commented, NewDecision, NewHandler, NewRun, Run, RunDetail, RunStatus, Step, StepHandler, Waiting } from './schema.ts';

const ofRun = { run_id: Id };
const ofStep = { step_id: Id };

/** A workload that started runs sees them too: it names their environment by `target_env_id`. */
const reads = { gate: { any: ['workflow:runs:read', 'workflow:runs:write'] }, env: 'own' } as const;
const decides = {
  gate: { any: ['workflow:decisions:write', 'workflow:decisions:take'] },
  env: 'own',
  returns: RunDetail,
  problems: ['step_not_found', 'step_not_waiting', 'decided_otherwise', 'decision_denied'],
} as const;

/** G-WFL-01. */
export const routes = {
  registerHandler: put('/v1/workflows/step-handlers/{domain}', {
    params: { domain: Domain },
    summary: 'Register the service that answers the steps of a domain; the same again changes nothing',
    gate: 'workflow:handlers:write',
    body: NewHandler,
    returns: StepHandler,
    problems: ['handler_denied', 'domain_taken'],
  }),
  listHandlers: get('/v1/workflows/step-handlers', {
    summary: 'Who answers steps, by domain',
    gate: 'workflow:handlers:read',
    query: PageQuery,
    returns: Page(StepHandler),
  }),
  startRun: post('/v1/workflows/runs', {
    summary: 'Start a run, once under its key',
    gate: 'workflow:runs:write',
    idempotency: 'own',
    limit: 73_728,
    body: NewRun,
    returns: Type.Object({ run_id: Id }),
    status: 202,
    problems: [
      'unknown_workflow',
      'unknown_step_kind',
      'input_refused',
      'input_too_large',
      'domain_unregistered',
      'run_denied',
      'key_reused',
      'too_many_runs',
    ],
  }),
  listRuns: get('/v1/workflows/runs', {
    summary: 'Runs, newest first',
    ...reads,
    query: { status: Type.Optional(RunStatus), workflow: Type.Optional(Type.String({ title: 'Workflow', maxLength: 64 })), ...PageQuery },
    returns: Page(Run),
  }),
  getRun: get('/v1/workflows/runs/{run_id}', {
    params: ofRun,
    summary: 'One run with its steps',
    ...reads,
    returns: RunDetail,
    problems: ['run_not_found'],
  }),
  listSteps: get('/v1/workflows/runs/{run_id}/steps', {
    params: ofRun,
    summary: 'Steps of a run',
    ...reads,
    returns: Type.Object({ items: Type.Array(Step) }),
    problems: ['run_not_found'],
    hidden: true,
  }),
  cancelRun: post('/v1/workflows/runs/{run_id}/cancel', {
    params: ofRun,
    summary: 'End a run that is under way; it fails with the code cancelled',
    gate: { any: ['workflow:runs:admin', 'workflow:runs:write'] },
    env: 'own',
    returns: RunDetail,
    problems: ['run_not_found', 'run_finished'],
    emits: ['platform:workflow:run:failed'],
  }),
  decide: post('/v1/workflows/runs/{run_id}/steps/{step_id}/decision', {
    params: { run_id: Id, step_id: Id },
    summary: 'Decide about a step that waits',
    body: NewDecision,
    ...decides,
  }),
  listDecisions: get('/v1/workflows/decisions', {
    summary: 'Steps that wait for a decision: those of the caller’s groups, all of them for who may make any',
    gate: { any: ['workflow:decisions:write', 'workflow:decisions:take'] },
    env: 'own',
    query: PageQuery,
    returns: Page(Waiting),
  }),
  approveStep: post('/v1/workflows/decisions/{step_id}/approve', {
    params: ofStep,
    summary: 'Approve a step that waits',
    body: Commented,
    ...decides,
    hidden: true,
  }),
  declineStep: post('/v1/workflows/decisions/{step_id}/decline', {
    params: ofStep,
    summary: 'Decline a step that waits',
    body: Commented,
    ...decides,
    hidden: true,
  }),
} as const;
