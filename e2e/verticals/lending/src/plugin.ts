import { functions, registry } from '@platform/contracts';
import { definePlugin } from '@platform/sdk';
import { lending } from '../contract/index.ts';
import { Loans } from './loans.ts';

export default definePlugin(lending, {
  uses: { functions, registry },
  migrations: new URL('../migrations/', import.meta.url),

  setup(ctx) {
    const loans = new Loans(ctx);
    return {
      routes: {
        listLoans: request => loans.list(request),
        getLoan: request => loans.get(request),
        figures: request => loans.figures(request),
        applyLoan: request => loans.apply(request),
        exposure: request => loans.exposure(request),
        decideLoan: request => loans.decide(request),
      },
      on: {
        envArchived: async ({ envId, payload }) => {
          ctx.log.info({ env_id: envId, org_id: payload.org_id }, 'freezing the loan book');
          await loans.freeze(envId);
        },
      },
    };
  },
});
