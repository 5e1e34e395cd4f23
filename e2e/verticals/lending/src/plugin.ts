import { functions, registry } from '@platform/contracts';
import { definePlugin } from '@platform/sdk';
import { type Loan, lending } from '../contract/index.ts';
import { CreditRule } from './credit-rule.ts';

export default definePlugin(lending, {
  uses: { functions, registry },
  migrations: new URL('../migrations/', import.meta.url),

  setup: ({ config, db, log, metrics, page, platform, problem, services }) => ({
    routes: {
      listLoans: ({ query, env }) =>
        page(query, { list: `loans ${env}`, order: { loan_id: 'id' } }, ({ where, order, limit }) =>
          db.of(env).read(
            sql => sql<Loan[]>`
          select loan_id, applicant, amount_minor, state, reason, created_at from loans where env_id = ${env} and ${where} order by ${order} limit ${limit}`,
          ),
        ),

      getLoan: async ({ params, env }) => {
        const [loan] = await db
          .of(env)
          .read(
            sql =>
              sql<
                Loan[]
              >`select loan_id, applicant, amount_minor, state, reason, created_at from loans where loan_id::text = ${params.loan_id} and env_id = ${env}`,
          );
        if (!loan) throw problem('loan_not_found', { detail: 'This environment has no loan of that number.' });
        return loan;
      },

      figures: ({ env }) =>
        db.of(env).read(async sql => {
          const [sums] = await sql<[{ open: number; approved: number; lent_minor: number }]>`
          select count(*) filter (where state = 'applied')::int as open, count(*) filter (where state = 'approved')::int as approved,
                 coalesce(sum(amount_minor) filter (where state = 'approved'), 0)::float8 as lent_minor
          from loans where env_id = ${env}`;
          const items = await sql<{ day: string; count: number }[]>`
          select to_char(day, 'YYYY-MM-DD') as day, count(loan_id)::int as count
          from generate_series(current_date - 13, current_date, interval '1 day') day left join loans on loans.env_id = ${env} and loans.created_at::date = day
          group by day order by day`;
          return { ...sums, items };
        }),

      applyLoan: async ({ body, caller, env: envId }) => {
        if (body.amount_minor > config.largestLoan) throw problem('amount_too_large', { detail: `At most ${config.largestLoan}.` });
        const loan = await db.of(envId).tx(async tx => {
          const [loan] = await tx.sql<[Loan]>`
            insert into loans ${tx.sql.row({ loan_id: platform.newId(), env_id: envId, ...body })} returning loan_id, applicant, amount_minor, state, reason, created_at`;
          await tx.emit('acme:lending:loan:applied', envId, { loan_id: loan.loan_id, state: loan.state });
          await tx.audit({ action: 'loan.applied', envId, caller, resource: { type: 'loan', id: loan.loan_id } });
          return loan;
        });
        const reason = await new CreditRule(services.functions, log).rejects(envId, loan);
        if (reason === undefined) return loan;
        const answer = await db.of(envId).tx(async tx => {
          const [declined] = await tx.sql<Loan[]>`
            update loans set state = 'declined', decided_by = 'credit-rule', reason = ${reason} where loan_id = ${loan.loan_id} and state = 'applied'
            returning loan_id, applicant, amount_minor, state, reason, created_at`;
          if (!declined) return undefined;
          await tx.emit('acme:lending:loan:decided', envId, { loan_id: loan.loan_id, state: declined.state });
          await tx.audit({
            action: 'loan.decided',
            envId,
            caller,
            resource: { type: 'loan', id: loan.loan_id },
            details: { state: declined.state, by: 'credit-rule' },
          });
          return declined;
        });
        if (answer) metrics.decisions.add(1, { outcome: 'declined', by: 'credit-rule' });
        return answer ?? loan;
      },

      exposure: async ({ body, env }) => {
        const [sum] = await db.of(env).read(
          sql => sql<[{ approved_minor: number }]>`
          select coalesce(sum(amount_minor), 0)::float8 as approved_minor from loans where env_id = ${env} and applicant = ${body.applicant} and state = 'approved'`,
        );
        return sum;
      },

      decideLoan: async ({ params, body, caller, env: envId }) => {
        const state = body.approve ? ('approved' as const) : ('declined' as const);
        const decided = await db.of(envId).tx(async tx => {
          const [loan] = await tx.sql<
            Loan[]
          >`select loan_id, applicant, amount_minor, state, reason, created_at from loans where loan_id::text = ${params.loan_id} and env_id = ${envId} for update`;
          if (!loan) throw problem('loan_not_found');
          if (loan.state !== 'applied') throw problem('already_decided');
          await tx.sql`update loans set state = ${state}, decided_by = ${caller.userId} where loan_id = ${loan.loan_id}`;
          await tx.emit('acme:lending:loan:decided', envId, { loan_id: loan.loan_id, state });
          await tx.audit({ action: 'loan.decided', envId, caller, resource: { type: 'loan', id: loan.loan_id }, details: { state } });
          return { ...loan, state };
        });
        metrics.decisions.add(1, { outcome: state, by: 'person' });
        return decided;
      },
    },
    on: {
      envArchived: async ({ envId, payload }) => {
        log.info({ env_id: envId, org_id: payload.org_id }, 'freezing the loan book');
        await db
          .of(envId)
          .tx(async tx => void (await tx.sql`update loans set state = 'frozen' where env_id = ${envId} and state = 'applied'`));
      },
    },
  }),
});
