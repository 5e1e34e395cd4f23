import { as, describeConformance } from '@platform/testing';
import plugin from '../src/plugin.ts';

const nobody = 'A run calls a service of its domain, and none is there; the suites show it.';
describeConformance(
  plugin,
  {},
  {
    rows: async host => {
      await host.by(as.machine('credit', 'workflow:handlers:write')).registerHandler({
        params: { domain: 'credit' },
        body: { service: 'credit', kinds: ['Score'], path: '/v1/internal/steps/execute' },
      });
    },
    unlisted: { listRuns: nobody, listSteps: nobody, listDecisions: nobody },
  },
);
