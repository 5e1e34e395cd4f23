import type { functions } from '@platform/contracts';
import { type Context, isProblem } from '@platform/sdk';
import type { Loan, lending } from '../contract/index.ts';

type LendingContext = Context<typeof lending, { readonly functions: typeof functions }>;

/** The rule that an environment has for loans: a function of the product `credit-rule`, as `e2e/functions/credit-rule` is one. */
export class CreditRule {
  readonly #functions: LendingContext['services']['functions'];
  readonly #log: LendingContext['log'];

  constructor(functions: LendingContext['services']['functions'], log: LendingContext['log']) {
    [this.#functions, this.#log] = [functions, log];
  }

  /** Why it rejects a loan; nothing where it does not, or where there is no rule: then a person decides. */
  async rejects(envId: string, { loan_id, applicant, amount_minor }: Loan): Promise<string | undefined> {
    try {
      const { decision, reject_reason: reason } = await this.#functions.executeProduct({
        params: { product_id: 'credit-rule' },
        query: { domain: 'lending' },
        targetEnvId: envId,
        body: {
          hook: 'decide',
          protocol: 'hook',
          context: { applicant, amount_minor },
          idempotency_key: loan_id,
          imports: { exposure: '/v1/internal/exposure' },
        },
      });
      return decision === 'reject' ? (reason ?? 'The credit rule rejects it.') : undefined;
    } catch (err) {
      if (!isProblem(err) || err.code !== 'no_active_version')
        this.#log.warn({ err, loan_id }, 'the credit rule did not answer; a person decides');
      return undefined;
    }
  }
}
