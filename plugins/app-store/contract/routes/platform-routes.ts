import { get, post } from '@platform/sdk/contract';
import { Firing } from '@platform/scheduler/contract';
import { StepRequest, StepResponse } from '@platform/workflow/contract';
import { Figures, RuntimeContext } from '../schema/runtime.ts';

/** What frontends, the workflow service and the scheduler ask (G-APP-04, G-APP-06, G-APP-08). */
export const platformRoutes = {
  runtimeContext: get('/v1/app/runtime/context', {
    summary: 'What the application on this host is, for its frontend',
    gate: { public: 'A frontend asks before anybody has signed in, and hears nothing that is not public (APP-060)' },
    returns: RuntimeContext,
    problems: ['app_unmapped', 'too_many_hosts', 'neighbour_unavailable'],
  }),
  executeStep: post('/v1/internal/steps/execute', {
    summary: 'A step of an install’s onboarding',
    gate: 'app:steps:execute',
    env: 'any',
    idempotency: 'own',
    body: StepRequest,
    returns: StepResponse,
    problems: ['unknown_step_kind'],
  }),
  dailyCounters: post('/v1/internal/jobs/daily-counters', {
    summary: 'Count the day: how many instances, listings and installs each environment has',
    gate: 'app:jobs:run',
    env: 'any',
    idempotency: 'own',
    body: Firing,
    status: 202,
  }),
  figures: get('/v1/app/admin/figures', {
    summary: 'Listings and installs of an environment',
    gate: { any: ['app:instances:read', 'app:instances:admin'] },
    env: 'own',
    returns: Figures,
    hidden: true,
  }),
} as const;
