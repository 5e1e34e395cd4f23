import { as, boot, type BootedHost } from '@platform/testing';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { lending } from '../contract/index.ts';
import plugin from '../src/plugin.ts';

const ada = as.user('acme:lending:read', 'acme:lending:decide');
/** What the credit rule of the environment says. */
let rule: () => object = () => ({ decision: 'accept' });
let host: BootedHost<typeof lending>;
beforeAll(async () => {
  host = await boot(plugin, { stubs: { functions: { executeProduct: async () => rule() as never } } });
});
afterAll(() => host?.[Symbol.asyncDispose]());

const apply = (amount_minor: number, applicant = 'Grace') => host.by(ada).applyLoan({ body: { applicant, amount_minor } });
const decide = (loan_id: string, approve: boolean) => host.by(ada).decideLoan({ params: { loan_id }, body: { approve } });

describe('a loan', () => {
  test('is applied for, listed, decided once, and each step is told and recorded', async () => {
    const loan = await apply(1_000);
    expect(loan).toMatchObject({ applicant: 'Grace', amount_minor: 1_000, state: 'applied', reason: null });
    expect((await host.by(ada).listLoans({})).items).toContainEqual(loan);
    expect(await decide(loan.loan_id, true)).toMatchObject({ loan_id: loan.loan_id, state: 'approved' });
    await expect(decide(loan.loan_id, false)).rejects.toMatchObject({ status: 409, code: 'already_decided' });
    expect(await host.by(ada).figures({})).toMatchObject({ approved: 1, lent_minor: 1_000 });
    const about = ({ payload }: { payload: Record<string, unknown> }) => payload['loan_id'] === loan.loan_id;
    const [decided] = await host.events('acme:lending:loan:decided', 1, about);
    expect(decided).toMatchObject({ env_id: ada.envId, payload: { state: 'approved' } });
    await expect.poll(() => host.audits.map(({ action }) => action)).toEqual(expect.arrayContaining(['loan.applied', 'loan.decided']));
  });

  test('above the limit is refused, and nothing is written down', async () => {
    const before = (await host.by(ada).listLoans({})).items.length;
    await expect(apply(10_000_001)).rejects.toMatchObject({ status: 400, code: 'amount_too_large' });
    expect((await host.by(ada).listLoans({})).items).toHaveLength(before);
  });

  test('is declined by the credit rule with its reason; without an answer of the rule a person decides', async () => {
    rule = () => ({ decision: 'reject', reject_reason: 'Too young a company.' });
    expect(await apply(2_000)).toMatchObject({ state: 'declined', reason: 'Too young a company.' });
    rule = () => {
      throw new Error('the functions are away');
    };
    expect(await apply(3_000)).toMatchObject({ state: 'applied' });
    rule = () => ({ decision: 'accept' });
  });

  test('waits for nobody once its environment is archived, and is nobody else’s', async () => {
    const loan = await apply(4_000, 'Linus');
    const elsewhere = as.userIn('01900000-0000-7000-8000-0000000000aa', ...ada.scopes);
    await expect(host.by(elsewhere).getLoan({ params: { loan_id: loan.loan_id } })).rejects.toMatchObject({ code: 'loan_not_found' });
    const payload = { env_id: ada.envId, org_id: '01900000-0000-7000-8000-0000000000ab' };
    await host.deliver('platform:sys:env:archived', ada.envId, payload);
    expect(await host.by(ada).getLoan({ params: { loan_id: loan.loan_id } })).toMatchObject({ state: 'frozen' });
    await expect(decide(loan.loan_id, true)).rejects.toMatchObject({ code: 'already_decided' });
  });
});
