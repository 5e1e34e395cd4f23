import { counter, defineContract, Id, task, Type } from '@platform/sdk/contract';
import { events } from './events.ts';
import { pages } from './pages.ts';
import { problems } from './problems.ts';
import { routes } from './routes.ts';

export { executesSteps, InstallStepKind, StepDecision, StepRequest, StepResponse } from './step.ts';

/** Workflows: steps that other services answer, in order, with decisions of people between them (G-WFL-01). */
export const workflow = defineContract({
  id: 'workflow',
  title: 'Workflows',
  placement: { tier: 30 },
  uses: { auth: ['auth:membership:read'] },
  capabilities: ['backends'],
  config: Type.Object({
    runsPerEnvironment: Type.Integer({
      env: 'PLATFORM_WORKFLOW_RUNS_PER_ENV',
      default: 200,
      minimum: 1,
      maximum: 100_000,
      description: 'Runs that are under way at once in an environment',
    }),
  }),
  actions: {
    'workflow:handlers:write': { title: 'Answer steps of workflows', principals: ['machine'], bound: true },
    'workflow:handlers:read': { title: 'See who answers steps' },
    'workflow:runs:write': { title: 'Start runs, and cancel the own ones', principals: ['machine'] },
    'workflow:runs:read': { title: 'See runs and their steps', grants: 'read' },
    'workflow:runs:admin': { title: 'Cancel runs', grants: 'admin', principals: ['user', 'delegated'] },
    'workflow:decisions:write': { title: 'Decide about any step', grants: 'admin', principals: ['user', 'delegated'] },
    'workflow:decisions:take': { title: 'Decide what waits for the own groups', grants: 'read', principals: ['user', 'delegated'] },
  },
  problems,
  events,
  routes,
  metrics: {
    step_calls: counter('Calls of steps at the services that answer them'),
    step_calls_failed: counter('Calls of steps that failed, for whatever reason'),
    step_answers_refused: counter('Answers to steps that no run can use'),
    runs_refused: counter('Runs refused because too many of their environment were under way'),
  },
  onEnvironmentDeleted: { purge: { runs: 'workflow runs' } },
  tasks: {
    step: task(Type.Object({ step_id: Id }), {
      summary: 'Ask for a step of a run',
      lane: 'env',
      attempts: 'unlimited',
      backoff: [1, 5, 30],
      timeout: '30s',
      slots: 16,
    }),
  },
  jobs: {
    expire: { summary: 'Fail runs whose decision nobody made in time', every: '1m', runs: 'fleet', timeout: '5m' },
    forget: { summary: 'Delete runs past their retention', every: '1h', runs: 'fleet', timeout: '5m' },
  },
  pages,
});
