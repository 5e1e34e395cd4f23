import {
  type ColumnDecl,
  counter,
  defineContract,
  event,
  get,
  Id,
  Page,
  PageQuery,
  post,
  type Static,
  subscribe,
  Type,
} from '@platform/sdk/contract';

const ofLoan = { loan_id: Id };

const Loan = Type.Object({
  loan_id: Type.String(),
  applicant: Type.String(),
  amount_minor: Type.Integer(),
  state: Type.Union([Type.Literal('applied'), Type.Literal('approved'), Type.Literal('declined'), Type.Literal('frozen')]),
  /** Why the credit rule declined it. */
  reason: Type.Union([Type.String(), Type.Null()]),
  created_at: Type.String(),
});
export type Loan = Static<typeof Loan>;
const LoanEvent = Type.Object({ loan_id: Type.String(), state: Type.String() });

const COLUMNS = [
  { field: 'applicant', label: 'Applicant' },
  { field: 'amount_minor', label: 'Amount', as: 'number' },
  { field: 'state', label: 'State', as: 'status', tones: { applied: 'info', approved: 'ok', declined: 'bad', frozen: 'muted' } },
  { field: 'created_at', label: 'Applied', as: 'ago' },
] as const satisfies readonly ColumnDecl[];

/** A lending book: a third party's service, written against the SDK alone. */
export const lending = defineContract({
  id: 'lending',
  vertical: 'acme',
  title: 'Lending',
  placement: { tier: 50 },
  // Of the registry it hears events alone, typed by its contract; the credit rule is a function that each environment uploads.
  uses: { sys: [], func: ['func:modules:execute'] },
  config: Type.Object({
    largestLoan: Type.Integer({
      env: 'ACME_LENDING_LARGEST_LOAN',
      default: 10_000_000,
      minimum: 1,
      description: 'Largest loan that can be applied for, in minor units',
    }),
  }),
  actions: {
    'lending:read': { title: 'See loans', grants: 'read' },
    'lending:decide': { title: 'Apply for and decide loans', grants: 'write', principals: ['user', 'delegated'] },
  },
  problems: {
    loan_not_found: { status: 404, title: 'No such loan', retry: 'never' },
    already_decided: { status: 409, title: 'This loan has been decided', retry: 'never' },
    amount_too_large: { status: 400, title: 'The amount is above the limit', retry: 'never' },
  },
  events: {
    'acme:lending:loan:applied': event('Somebody applied for a loan', LoanEvent),
    'acme:lending:loan:decided': event('A loan was approved or declined', LoanEvent),
  },
  consumes: { envArchived: subscribe('platform:sys:env:archived', { family: 'sys' }) },
  metrics: { decisions: counter('Loans decided, by how and by whom', { labels: ['outcome', 'by'] }) },
  onEnvironmentDeleted: { purge: { loans: 'loans' } },
  rowSecurity: ['loans'],
  routes: {
    listLoans: get('/v1/loans', { summary: 'Loans of this environment', gate: 'lending:read', query: PageQuery, returns: Page(Loan) }),
    getLoan: get('/v1/loans/{loan_id}', {
      params: ofLoan,
      summary: 'One loan',
      gate: 'lending:read',
      returns: Loan,
      problems: ['loan_not_found'],
    }),
    figures: get('/v1/figures', {
      summary: 'Loans by state, and by day of the last fortnight',
      gate: 'lending:read',
      returns: Type.Object({
        open: Type.Integer(),
        approved: Type.Integer(),
        lent_minor: Type.Integer(),
        items: Type.Array(Type.Object({ day: Type.String(), count: Type.Integer() })),
      }),
    }),
    applyLoan: post('/v1/loans', {
      summary: 'Apply for a loan',
      gate: 'lending:decide',
      body: Type.Object({
        applicant: Type.String({ title: 'Applicant', minLength: 1, maxLength: 120 }),
        amount_minor: Type.Integer({ title: 'Amount in minor units', minimum: 1 }),
      }),
      returns: Loan,
      status: 201,
      problems: ['amount_too_large'],
      emits: ['acme:lending:loan:applied', 'acme:lending:loan:decided'],
    }),
    exposure: post('/v1/internal/exposure', {
      summary: 'What is lent to somebody',
      gate: { workload: 'The credit rule asks for it', or: ['lending:read'] },
      env: 'target',
      idempotency: 'own',
      body: Type.Object({ applicant: Type.String({ maxLength: 120 }) }),
      returns: Type.Object({ approved_minor: Type.Integer() }),
    }),
    decideLoan: post('/v1/loans/{loan_id}/decision', {
      params: ofLoan,
      summary: 'Decide',
      gate: 'lending:decide',
      dispatch: true,
      body: Type.Object({ approve: Type.Boolean({ title: 'Approve', description: 'Off declines the loan' }) }),
      returns: Loan,
      problems: ['loan_not_found', 'already_decided'],
      emits: ['acme:lending:loan:decided'],
    }),
  },
  pages: {
    overview: {
      kind: 'board',
      title: 'Overview',
      icon: 'chart',
      nav: 1,
      live: ['acme:lending:loan:applied', 'acme:lending:loan:decided'],
      sections: [
        {
          kind: 'stats',
          source: 'figures',
          items: [
            { field: 'open', label: 'Waiting for a decision', as: 'number' },
            { field: 'approved', label: 'Approved', as: 'number' },
            { field: 'lent_minor', label: 'Lent', as: 'number' },
          ],
        },
        {
          title: 'Applications by day',
          kind: 'chart',
          chart: 'bar',
          source: 'figures',
          x: 'day',
          series: [{ field: 'count', label: 'Applications' }],
        },
        {
          title: 'Latest',
          kind: 'table',
          source: 'listLoans',
          key: 'loan_id',
          open: 'loan',
          columns: COLUMNS,
          empty: 'Nobody has applied for a loan yet.',
        },
      ],
    },
    loans: {
      kind: 'table',
      title: 'Loans',
      icon: 'list',
      nav: 2,
      source: 'listLoans',
      key: 'loan_id',
      create: 'applyLoan',
      open: 'loan',
      rowActions: [{ route: 'decideLoan', label: 'Decide', when: { field: 'state', is: 'applied' } }],
      live: ['acme:lending:loan:applied', 'acme:lending:loan:decided'],
      empty: 'Nobody has applied for a loan yet.',
      columns: COLUMNS,
    },
    loan: {
      kind: 'record',
      title: 'Loan',
      source: 'getLoan',
      heading: 'Loan of {applicant}',
      fields: [...COLUMNS, { field: 'reason', label: 'Declined because' }, { field: 'loan_id', label: 'Number', as: 'code' }],
      live: ['acme:lending:loan:decided'],
      actions: [
        {
          route: 'decideLoan',
          label: 'Approve',
          body: { approve: true },
          tone: 'ok',
          confirm: 'Approve the loan of {applicant}?',
          when: { field: 'state', is: 'applied' },
        },
        {
          route: 'decideLoan',
          label: 'Decline',
          body: { approve: false },
          tone: 'bad',
          confirm: 'Decline the loan of {applicant}?',
          when: { field: 'state', is: 'applied' },
        },
      ],
    },
  },
});
