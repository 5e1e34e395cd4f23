import { identity } from '@platform/identity/contract';
import { definePlugin } from '@platform/sdk';
import { workflow } from '../contract/index.ts';
import { Decisions } from './decisions.ts';
import { Engine } from './engine.ts';
import { RunRecords } from './run-records.ts';
import { Runs } from './runs.ts';
import { StepCall } from './step-call.ts';
import { StepHandlers } from './step-handlers.ts';

export default definePlugin(workflow, {
  uses: { identity },
  migrations: new URL('../migrations/', import.meta.url),

  setup(ctx) {
    const records = new RunRecords(ctx);
    const handlers = new StepHandlers(ctx);
    const runs = new Runs(ctx, { records, handlers });
    const decisions = new Decisions(ctx, records);
    const call = new StepCall(ctx, handlers);
    const engine = new Engine(ctx, { records, call });
    return {
      routes: {
        registerHandler: request => handlers.register(request),
        listHandlers: ({ query }) => handlers.list(query),
        startRun: request => runs.start(request),
        listRuns: ({ env, query, caller }) => records.list(env, query, caller),
        getRun: ({ env, params, caller }) => records.detail(env, params.run_id, caller),
        listSteps: async ({ env, params, caller }) => ({ items: (await records.detail(env, params.run_id, caller)).steps }),
        cancelRun: request => runs.cancel(request),
        decide: ({ env, params, body, caller }) => decisions.decide({ env, runId: params.run_id, stepId: params.step_id, body, caller }),
        listDecisions: request => decisions.list(request),
        approveStep: ({ env, params, body, caller }) =>
          decisions.decide({ env, stepId: params.step_id, body: { outcome: 'approved', ...body }, caller }),
        declineStep: ({ env, params, body, caller }) =>
          decisions.decide({ env, stepId: params.step_id, body: { outcome: 'rejected', ...body }, caller }),
      },
      tasks: { step: (payload, task) => engine.perform(payload, task) },
      jobs: {
        expire: signal => decisions.expire(signal),
        forget: signal => records.forget(signal),
      },
    };
  },
});
