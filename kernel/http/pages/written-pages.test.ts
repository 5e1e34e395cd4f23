import { defineContract, get, Page, PageQuery, post, Type } from '@platform/sdk/contract';
import { expect, test } from 'vitest';
import { type Manifest, manifestOf } from '../../base/manifest.ts';
import { checkManifest } from '@platform/checks';
import { pageDefinition } from './page-definition.ts';

const Loan = Type.Object({ loan_id: Type.String(), customer_id: Type.String(), state: Type.String() });
const summary = 'x';
const gate = 'bank:loan:write';
const bank = defineContract({
  id: 'bank',
  vertical: 'bank',
  title: 'Bank',
  placement: { tier: 50 },
  uses: { crm: [] },
  actions: { [gate]: { title: 'Decide loans' } },
  problems: {},
  events: {},
  routes: {
    listLoans: get('/v1/loans', {
      summary,
      gate,
      query: {
        ...PageQuery,
        customer_id: Type.Optional(Type.String()),
        q: Type.Optional(Type.String()),
        state: Type.Optional(Type.String({ maxLength: 320 })),
      },
      returns: Page(Loan),
    }),
    getLoan: get('/v1/loans/{loan_id}', { summary, gate, params: { loan_id: Type.String() }, returns: Loan }),
    figures: get('/v1/figures', {
      summary,
      gate,
      query: { customer_id: Type.Optional(Type.String()) },
      returns: Type.Object({ open: Type.Integer(), open_by_day: Type.Array(Type.Integer()) }),
    }),
    closeDay: post('/v1/close', { summary, gate, body: Type.Object({ hard: Type.Boolean() }) }),
    decide: post('/v1/loans/{loan_id}/decide', { summary, gate, params: { loan_id: Type.String() } }),
  },
  pages: {
    loans: {
      kind: 'table',
      title: 'Loans',
      params: [{ name: 'customer_id' }],
      source: 'listLoans',
      search: 'q',
      filters: ['state'],
      open: 'loan',
      columns: [
        { field: 'loan_id', label: 'Loan' },
        { field: 'state', label: 'State', link: { page: 'loan', params: { loan_id: '{loan_id}' } } },
        { field: 'customer_id', label: 'Customer', link: { service: 'crm', page: 'customer', params: { customer_id: '{customer_id}' } } },
      ],
      actions: [
        {
          route: 'closeDay',
          label: 'Close the day',
          body: { hard: true },
          requires: gate,
          when: { field: 'customer_id', is: '7' },
          then: { page: 'figures', params: { customer_id: '{customer_id}' } },
        },
      ],
      rowActions: [{ route: 'decide', label: 'Decide', requires: gate, then: { page: 'loan', params: { loan_id: '{loan_id}' } } }],
    },
    loan: { kind: 'record', title: 'Loan', source: 'getLoan', fields: [{ field: 'state', label: 'State' }] },
    figures: {
      kind: 'stats',
      title: 'Figures',
      params: [{ name: 'customer_id', required: true }],
      source: 'figures',
      items: [{ field: 'open', label: 'Open', trend: 'open_by_day' }],
    },
    overview: {
      kind: 'board',
      title: 'Overview',
      params: [{ name: 'customer_id' }],
      sections: [{ kind: 'stats', source: 'figures', items: [{ field: 'open', label: 'Open' }] }],
    },
  },
});
const good = manifestOf(bank, '1.0.0');

test('an action of the page sends values without asking, while a parameter says so, to those who may', () => {
  expect(pageDefinition(good, 'loans')?.sections[0]).toEqual({
    id: 'loans-create',
    kind: 'actions',
    actions: [
      {
        id: 'closeDay',
        label: 'Close the day',
        resource: 'loans/closeDay',
        body: { hard: true },
        requires: gate,
        when: { path: 'customer_id', op: 'eq', value: '7' },
        then: { page: 'figures', params: { customer_id: '{customer_id}' } },
      },
    ],
  });
});

test('any column leads to a page of this service or of another, with parameters from the row, and so does the end of an action', () => {
  expect(pageDefinition(good, 'loans')?.sections[1]).toMatchObject({
    columns: [
      { value: 'loan_id', link: { page: 'loan', params: { loan_id: '{row.loan_id}' } } },
      { value: 'state', link: { page: 'loan', params: { loan_id: '{row.loan_id}' } } },
      { value: 'customer_id', link: { service: 'crm', page: 'customer', params: { customer_id: '{row.customer_id}' } } },
    ],
    row_actions: [{ requires: gate, then: { page: 'loan', params: { loan_id: '{row.loan_id}' } } }],
  });
});

test('parameters of a page reach every source that takes them', () => {
  const query = { customer_id: '{customer_id}' };
  expect(pageDefinition(good, 'loans')).toMatchObject({
    params: [{ name: 'customer_id' }],
    sections: [{}, { source: { resource: 'loans', query } }],
  });
  expect(pageDefinition(good, 'figures')).toMatchObject({
    params: [{ name: 'customer_id', required: true }],
    sections: [{ source: { resource: 'figures', query }, items: [{ value: 'open', trend: 'open_by_day' }] }],
  });
  expect(pageDefinition(good, 'overview')).toMatchObject({ sections: [{ source: { resource: 'overview/figures', query } }] });
});

test('a search stands before the filters, and words that are looked for in one line', () => {
  expect(pageDefinition(good, 'loans')?.sections[1]).toMatchObject({
    filters: [
      { name: 'q', label: 'Search', type: 'text' },
      { name: 'state', label: 'State', type: 'text' },
    ],
  });
});

const crm = { ...good, id: 'crm', pages: { customers: { kind: 'text', title: 'x', text: 'x' } } } as unknown as Manifest;
const faults = (change: object, page = 'loans', known?: ReadonlyMap<string, Manifest>) => {
  const pages = { ...good.pages, [page]: { ...good.pages[page], ...change } };
  return checkManifest({ ...good, pages } as Manifest, known).map(({ id, where }) => `${id} ${where.replace('bank.pages.', '')}`);
};
const linked = (link: object) => ({ columns: [{ field: 'state', label: 'x', link }] });

test('what a link, a parameter, a trend and `requires` name is checked', () => {
  expect(checkManifest(good)).toEqual([]);
  expect(faults(linked({ page: 'nothing' }))).toEqual(['E053 loans.columns.state.link']);
  expect(faults(linked({ page: 'loan' }))).toEqual(['E053 loans.columns.state.link']);
  expect(faults(linked({ page: 'figures' }))).toEqual(['E053 loans.columns.state.link']);
  expect(faults(linked({ page: 'loan', params: { loan_id: '{colour}' } }))).toEqual(['E051 loans.columns.state.link']);
  expect(faults(linked({ service: 'nobody', page: 'x' }))).toEqual(['E053 loans.columns.state.link']);
  expect(faults(linked({ service: 'crm', page: 'customer' }))).toEqual([]);
  expect(faults(linked({ service: 'crm', page: 'customer' }), 'loans', new Map([['crm', crm]]))).toEqual(['E053 loans.columns.state.link']);
  expect(faults({ actions: [{ route: 'closeDay', label: 'x', requires: 'bank:nothing' }] })).toEqual([
    'E031 loans.actions.closeDay.requires',
  ]);
  expect(faults({ actions: [{ route: 'closeDay', label: 'x', when: { field: 'state', is: 1 } }] })).toEqual([
    'E051 loans.actions.closeDay.when',
  ]);
  expect(faults({ actions: [{ route: 'closeDay', label: 'x', then: { page: 'figures', params: { customer_id: '{state}' } } }] })).toEqual([
    'E051 loans.actions.closeDay.then',
  ]);
  expect(faults({ params: [{ name: 'colour' }], actions: [] })).toEqual(['E057 loans.params']);
  expect(faults({ params: [{ name: 'env' }], actions: [] })).toEqual(['E056 loans.params', 'E057 loans.params']);
  expect(faults({ search: 'colour' })).toEqual(['E057 loans.search']);
  expect(faults({ items: [{ field: 'open', label: 'x', trend: 'closed' }] }, 'figures')).toEqual(['E051 figures.items']);
});
