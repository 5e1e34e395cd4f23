import { defineContract, get, Page, PageQuery, post, Type } from '@platform/sdk/contract';
import { expect, test } from 'vitest';
import { manifestOf } from '../../base/manifest.ts';
import { checkManifest } from '@platform/checks';
import { pageDefinition } from './page-definition.ts';
import { gatesOfPage, pageResources } from './page-resources.ts';

const params = { loan_id: Type.String() };
const Loan = Type.Object({ loan_id: Type.String(), applicant: Type.String(), state: Type.String(), created_at: Type.String() });
const Note = Type.Object({ note_id: Type.String(), text: Type.String() });
const gate = 'bank:loan:read';
const bank = defineContract({
  id: 'bank',
  vertical: 'bank',
  title: 'Bank',
  placement: { tier: 50 },
  actions: { 'bank:loan:read': { title: 'Read loans' }, 'bank:loan:write': { title: 'Decide loans' } },
  problems: {},
  events: {},
  routes: {
    listLoans: get('/v1/loans', { summary: 'Loans', gate, query: PageQuery, returns: Page(Loan) }),
    getLoan: get('/v1/loans/{loan_id}', { params, summary: 'A loan', gate, returns: Loan }),
    listNotes: get('/v1/loans/{loan_id}/notes', { params, summary: 'Notes', gate, returns: Page(Note) }),
    search: get('/v1/search', { summary: 'Alike', gate, query: { like: Type.String() }, returns: Page(Loan) }),
    figures: get('/v1/figures', { summary: 'Figures', gate: 'bank:loan:write', returns: Type.Object({ open: Type.Integer() }) }),
    addNote: post('/v1/loans/{loan_id}/notes', {
      params,
      summary: 'Add a note',
      gate: 'bank:loan:write',
      body: Type.Object({
        text: Type.String(),
        file: Type.Optional(Type.String({ widget: 'file' })),
        like: Type.String({ optionsFrom: 'listLoans' }),
      }),
    }),
    decide: post('/v1/loans/{loan_id}/decide', {
      params,
      summary: 'Decide',
      gate: 'bank:loan:write',
      body: Type.Object({ approve: Type.Boolean() }),
    }),
  },
  pages: {
    loans: {
      kind: 'table',
      title: 'Loans',
      source: 'listLoans',
      columns: [
        { field: 'applicant', label: 'Applicant' },
        { field: 'created_at', label: 'Since', as: 'ago' },
      ],
      open: 'loan',
      bulkActions: [{ route: 'decide', label: 'Approve', body: { approve: true } }],
    },
    loan: {
      kind: 'record',
      title: 'Loan',
      source: 'getLoan',
      heading: 'Loan of {applicant}',
      fields: [{ field: 'state', label: 'State' }],
      actions: [
        {
          route: 'decide',
          label: 'Decline',
          body: { approve: false },
          confirm: 'Decline the loan of {applicant}?',
          then: { page: 'loans' },
        },
      ],
      tabs: [
        { label: 'Notes', kind: 'table', source: 'listNotes', columns: [{ field: 'text', label: 'Text' }], create: 'addNote' },
        {
          label: 'Alike',
          kind: 'table',
          source: 'search',
          by: 'like',
          columns: [{ field: 'applicant', label: 'Applicant' }],
          open: 'loan',
        },
        { label: 'More', kind: 'detail', fields: [{ field: 'created_at', label: 'Made' }] },
      ],
    },
    overview: {
      kind: 'board',
      title: 'Overview',
      icon: 'chart',
      sections: [
        { title: 'Now', kind: 'stats', source: 'figures', items: [{ field: 'open', label: 'Open' }] },
        { title: 'Latest', kind: 'table', source: 'listLoans', columns: [{ field: 'applicant', label: 'Applicant' }], open: 'loan' },
      ],
    },
  },
});
const manifest = manifestOf(bank, '1.0.0');

test('F-46 a row leads to its record: the first column is a link that carries the row key as the parameter of the page', () => {
  expect(pageDefinition(manifest, 'loans')).toMatchObject({
    sections: [
      {
        columns: [{ value: 'applicant', link: { page: 'loan', params: { loan_id: '{row.loan_id}' } } }, { format: 'ago' }],
        bulk_actions: [{ resource: 'loans/{row.loan_id}/decide', body: { approve: true } }],
      },
    ],
  });
  expect(pageDefinition(manifest, 'loan')).toMatchObject({
    params: [{ name: 'loan_id', required: true }],
    sections: [
      {
        kind: 'detail',
        title: 'Loan of {row.applicant}',
        source: { resource: 'loan/{loan_id}' },
        actions: [
          { label: 'Decline', resource: 'loan/{loan_id}/decide', confirm: 'Decline the loan of {row.applicant}?', then: { page: 'loans' } },
        ],
      },
      {
        kind: 'tabs',
        tabs: [
          {
            label: 'Notes',
            sections: [
              {
                kind: 'actions',
                actions: [
                  {
                    resource: 'loan/{loan_id}/addNote',
                    form: [
                      { name: 'text' },
                      { name: 'file', type: 'file' },
                      { name: 'like', type: 'select', options_source: { resource: 'options/listLoans' } },
                    ],
                  },
                ],
              },
              { kind: 'table', source: { resource: 'loan/{loan_id}/listNotes' } },
            ],
          },
          { label: 'Alike', sections: [{ source: { resource: 'loan/search', query: { like: '{loan_id}' } } }] },
          { label: 'More', sections: [{ kind: 'detail', source: { resource: 'loan/{loan_id}' } }] },
        ],
      },
    ],
  });
});

test('F-46 figures and a table stand on one page, each with a source of its own', () => {
  expect(pageDefinition(manifest, 'overview')).toMatchObject({
    sections: [
      { id: 'overview-0', title: 'Now', kind: 'stats', source: { resource: 'overview/figures' } },
      {
        id: 'overview-1',
        title: 'Latest',
        kind: 'table',
        source: { resource: 'overview/listLoans' },
        columns: [{ link: { page: 'loan' } }],
      },
    ],
  });
  expect(gatesOfPage(manifest, 'overview').toSorted()).toEqual(['bank:loan:read', 'bank:loan:write']);
});

test('every resource that a page names is a path of the route behind it, with the id where the route takes it', () => {
  expect(
    pageResources(manifest).map(({ method, path, operation, idParameter }) => [
      method,
      path.replace('/v1/admin/', ''),
      operation,
      ...(idParameter ? [idParameter] : []),
    ]),
  ).toEqual([
    ['GET', 'loans', 'listLoans'],
    ['POST', 'loans/{id}/decide', 'decide', 'loan_id'],
    ['GET', 'loan/{id}', 'getLoan', 'loan_id'],
    ['POST', 'loan/{id}/decide', 'decide', 'loan_id'],
    ['GET', 'loan/{id}/listNotes', 'listNotes', 'loan_id'],
    ['POST', 'loan/{id}/addNote', 'addNote', 'loan_id'],
    ['GET', 'loan/search', 'search'],
    ['GET', 'overview/figures', 'figures'],
    ['GET', 'overview/listLoans', 'listLoans'],
    ['GET', 'options/listLoans', 'listLoans'],
  ]);
});

test('F-43 a page that would break in the browser is named before: routes, members and records that are not there', () => {
  expect(checkManifest(manifest)).toEqual([]);
  const faulty = (pages: object) =>
    checkManifest({ ...manifest, pages: { ...manifest.pages, ...pages } } as typeof manifest).map(({ id, where }) => `${id} ${where}`);
  const { loans, loan, overview } = manifest.pages as unknown as Record<string, Record<string, unknown>>;
  expect(faulty({ loans: { ...loans, open: 'overview' } })).toEqual(['E053 bank.pages.loans.open']);
  expect(faulty({ loan: { ...loan, source: 'listLoans' } })).toContain('E054 bank.pages.loan.source');
  expect(faulty({ loan: { ...loan, fields: [{ field: 'colour', label: 'Colour' }] } })).toEqual(['E051 bank.pages.loan.fields']);
  expect(faulty({ loan: { ...loan, tabs: [{ label: 'Notes', kind: 'table', source: 'listNote', columns: [] }] } })).toEqual([
    'E050 bank.pages.loan.tabs.0.source',
  ]);
  expect(
    faulty({
      overview: {
        ...overview,
        sections: [{ kind: 'table', source: 'listLoans', columns: [{ field: 'nobody', label: '' }], rowActions: ['nothing'] }],
      },
    }),
  ).toEqual(['E050 bank.pages.overview.sections.0.rowActions', 'E051 bank.pages.overview.sections.0.columns']);
  expect(faulty({ both: { kind: 'tabs', title: 'Both', tabs: [{ label: 'One', page: 'nothing' }] } })).toEqual([
    'E053 bank.pages.both.tabs',
  ]);
});
