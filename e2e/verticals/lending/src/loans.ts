import type { functions, registry } from '@platform/contracts';
import type { Context, RequestOf } from '@platform/sdk';
import type { Loan, lending } from '../contract/index.ts';
import { CreditRule } from './credit-rule.ts';

type LendingContext = Context<typeof lending, { readonly functions: typeof functions; readonly registry: typeof registry }>;
type Asked<R extends keyof (typeof lending)['routes']> = RequestOf<typeof lending, R>;

/** The loan book of an environment. */
export class Loans {
  readonly #ctx: LendingContext;
  readonly #rule: CreditRule;

  constructor(ctx: LendingContext) {
    this.#ctx = ctx;
    this.#rule = new CreditRule(ctx.services.functions, ctx.log);
  }

  list({ query, env }: Asked<'listLoans'>) {
    const { db, page } = this.#ctx;
    return page(query, { list: `loans ${env}`, order: { loan_id: 'id' } }, ({ where, order, limit }) =>
      db.of(env).read(
        sql => sql<Loan[]>`
          select loan_id, applicant, amount_minor, state, reason, created_at from loans
          where env_id = ${env} and ${where} order by ${order} limit ${limit}`,
      ),
    );
  }

  async get({ params, env }: Asked<'getLoan'>) {
    const [loan] = await this.#ctx.db.of(env).read(
      sql => sql<Loan[]>`
        select loan_id, applicant, amount_minor, state, reason, created_at from loans
        where loan_id::text = ${params.loan_id} and env_id = ${env}`,
    );
    if (!loan) throw this.#ctx.problem('loan_not_found', { detail: 'This environment has no loan of that number.' });
    return loan;
  }

  figures({ env }: Asked<'figures'>) {
    return this.#ctx.db.of(env).read(async sql => {
      const [sums] = await sql<[{ open: number; approved: number; lent_minor: number }]>`
        select count(*) filter (where state = 'applied')::int as open, count(*) filter (where state = 'approved')::int as approved,
               coalesce(sum(amount_minor) filter (where state = 'approved'), 0)::float8 as lent_minor
        from loans where env_id = ${env}`;
      const items = await sql<{ day: string; count: number }[]>`
        select to_char(day, 'YYYY-MM-DD') as day, count(loan_id)::int as count
        from generate_series(current_date - 13, current_date, interval '1 day') day
          left join loans on loans.env_id = ${env} and loans.created_at::date = day
        group by day order by day`;
      return { ...sums, items };
    });
  }

  async exposure({ body, env }: Asked<'exposure'>) {
    const [sum] = await this.#ctx.db.of(env).read(
      sql => sql<[{ approved_minor: number }]>`
        select coalesce(sum(amount_minor), 0)::float8 as approved_minor from loans
        where env_id = ${env} and applicant = ${body.applicant} and state = 'approved'`,
    );
    return sum;
  }

  /** Takes an application down; the rule of the environment may decline it at once. */
  async apply(request: Asked<'applyLoan'>) {
    const { config, db, platform, problem } = this.#ctx;
    const { body, caller, env: envId } = request;
    if (body.amount_minor > config.largestLoan) throw problem('amount_too_large', { detail: `At most ${config.largestLoan}.` });
    const loan = await db.of(envId).tx(async tx => {
      const [row] = await tx.sql<[Loan]>`
        insert into loans ${tx.sql.row({ loan_id: platform.newId(), env_id: envId, ...body })}
        returning loan_id, applicant, amount_minor, state, reason, created_at`;
      await tx.emit('acme:lending:loan:applied', envId, { loan_id: row.loan_id, state: row.state });
      await tx.audit({ action: 'loan.applied', envId, caller, resource: { type: 'loan', id: row.loan_id } });
      return row;
    });
    const reason = await this.#rule.rejects(envId, loan);
    return reason === undefined ? loan : ((await this.#decline(request, loan, reason)) ?? loan);
  }

  async decide({ params, body, caller, env: envId }: Asked<'decideLoan'>) {
    const { db, metrics, problem } = this.#ctx;
    const state = body.approve ? ('approved' as const) : ('declined' as const);
    const decided = await db.of(envId).tx(async tx => {
      const [loan] = await tx.sql<Loan[]>`
        select loan_id, applicant, amount_minor, state, reason, created_at from loans
        where loan_id::text = ${params.loan_id} and env_id = ${envId} for update`;
      if (!loan) throw problem('loan_not_found');
      if (loan.state !== 'applied') throw problem('already_decided');
      await tx.sql`update loans set state = ${state}, decided_by = ${caller.userId} where loan_id = ${loan.loan_id}`;
      await tx.emit('acme:lending:loan:decided', envId, { loan_id: loan.loan_id, state });
      await tx.audit({ action: 'loan.decided', envId, caller, resource: { type: 'loan', id: loan.loan_id }, details: { state } });
      return { ...loan, state };
    });
    metrics.decisions.add(1, { outcome: state, by: 'person' });
    return decided;
  }

  /** Nothing is decided any more in an environment that was archived. */
  async freeze(envId: string): Promise<void> {
    await this.#ctx.db
      .of(envId)
      .tx(async tx => void (await tx.sql`update loans set state = 'frozen' where env_id = ${envId} and state = 'applied'`));
  }

  /** Nothing where somebody decided in the meantime. */
  async #decline({ caller, env: envId }: Asked<'applyLoan'>, { loan_id: id }: Loan, reason: string): Promise<Loan | undefined> {
    const declined = await this.#ctx.db.of(envId).tx(async tx => {
      const [loan] = await tx.sql<Loan[]>`
        update loans set state = 'declined', decided_by = 'credit-rule', reason = ${reason} where loan_id = ${id} and state = 'applied'
        returning loan_id, applicant, amount_minor, state, reason, created_at`;
      if (!loan) return undefined;
      const details = { state: loan.state, by: 'credit-rule' };
      await tx.emit('acme:lending:loan:decided', envId, { loan_id: id, state: loan.state });
      await tx.audit({ action: 'loan.decided', envId, caller, resource: { type: 'loan', id }, details });
      return loan;
    });
    if (declined) this.#ctx.metrics.decisions.add(1, { outcome: 'declined', by: 'credit-rule' });
    return declined;
  }
}
