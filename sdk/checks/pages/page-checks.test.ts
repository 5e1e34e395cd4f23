import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { defineContract, event, get, Page, PageQuery, post, Type } from '@platform/sdk/contract';
import { expect, test } from 'vitest';
import { type Manifest, manifestOf } from '../../../kernel/base/manifest.ts';
import { readPlugin } from '../../../kernel/host/plugin/loader.ts';
import { checkManifest } from '../checks.ts';
import { formatFinding } from '../finding.ts';

const Loan = Type.Object({
  loan_id: Type.String(),
  applicant: Type.String(),
  state: Type.String(),
  customer: Type.Object({ name: Type.String() }),
  more: Type.Object({}, { additionalProperties: true }),
});
const summary = 'x';
const params = { loan_id: Type.String() };
const read = 'bank:loan:read';
const gate = 'bank:loan:write';
const bank = defineContract({
  id: 'bank',
  vertical: 'bank',
  title: 'Bank',
  placement: { tier: 50 },
  uses: { post: [] },
  actions: { [read]: { title: 'Read loans' }, [gate]: { title: 'Decide loans' } },
  problems: {},
  events: { 'bank:bank:loan:made': event('A loan was made', Type.Object({})) },
  routes: {
    listLoans: get('/v1/loans', { summary, gate: read, query: { ...PageQuery, state: Type.Optional(Type.String()) }, returns: Page(Loan) }),
    getLoan: get('/v1/loans/{loan_id}', { params, summary, gate: read, returns: Loan }),
    figures: get('/v1/figures', { summary, gate: read, returns: Type.Object({ open: Type.Integer() }) }),
    decide: post('/v1/loans/{loan_id}/decide', { params, summary, gate, body: Type.Object({ approve: Type.Boolean() }) }),
    importAll: post('/v1/import', {
      summary,
      gate,
      body: Type.Object({ file: Type.String({ widget: 'file' }), like: Type.String({ optionsFrom: 'listLoans' }) }),
    }),
  },
  pages: {
    loans: {
      kind: 'table',
      title: 'Loans',
      icon: 'list',
      live: ['bank:bank:loan:made', 'bank:post:letter:sent'],
      source: 'listLoans',
      key: 'loan_id',
      open: 'loan',
      filters: ['state'],
      columns: [
        { field: 'applicant', label: 'Applicant' },
        { field: 'customer.name', label: 'Customer' },
        { field: 'more.anything', label: 'Anything' },
      ],
      actions: [{ route: 'importAll', label: 'Import', confirm: 'Import them all?' }],
      rowActions: [
        {
          route: 'decide',
          label: 'Approve',
          body: { approve: true },
          confirm: 'Approve the loan of {customer.name}?',
          when: { field: 'state', is: 'applied' },
        },
      ],
    },
    loan: {
      kind: 'record',
      title: 'Loan',
      source: 'getLoan',
      heading: 'Loan of {applicant}',
      fields: [{ field: 'state', label: 'State' }],
      actions: [{ route: 'decide', label: 'Decline', body: { approve: false }, then: { page: 'loans' } }],
      tabs: [{ label: 'More', kind: 'detail', fields: [{ field: 'loan_id', label: 'Loan' }] }],
    },
    figures: { kind: 'stats', title: 'Figures', source: 'figures', items: [{ field: 'open', label: 'Open' }] },
    curve: { kind: 'chart', title: 'Curve', chart: 'bar', source: 'listLoans', x: 'state', series: [{ field: 'loan_id', label: 'Loan' }] },
  },
});
const good = manifestOf(bank, '1.0.0');
type Draft = Record<'loans' | 'loan' | 'figures' | 'curve', Record<string, unknown>>;
const faults = (change: (pages: Draft, manifest: Manifest) => void, known?: ReadonlyMap<string, Manifest>) => {
  const draft = structuredClone(good);
  change(draft.pages as unknown as Draft, draft);
  return checkManifest(draft, known).map(({ id, where }) => `${id} ${where.replace('bank.pages.', '')}`);
};
const column = (field: string) => [{ field, label: 'x' }];
const onRow = (more: object) => (pages: Draft) => Object.assign(pages.loans, { rowActions: [{ route: 'decide', label: 'x', ...more }] });
const asking =
  (options: object) =>
  (_: Draft, { routes }: Manifest) =>
    Object.assign(routes['decide']?.options as object, {
      body: { type: 'object', properties: { approve: { type: 'string', ...options } } },
    });

test('a page without a fault has no finding, with members below members and members that a schema leaves open', () => {
  expect(checkManifest(good)).toEqual([]);
});

test.each<[finding: string, change: (pages: Draft, manifest: Manifest) => void]>([
  ['E051 loans.columns', pages => Object.assign(pages.loans, { columns: column('colour') })],
  ['E051 loans.columns', pages => Object.assign(pages.loans, { columns: column('customer.colour') })],
  ['E051 loans.rowDetail', pages => Object.assign(pages.loans, { rowDetail: column('colour') })],
  ['E051 loans.key', pages => Object.assign(pages.loans, { key: 'id' })],
  ['E051 loans.source', pages => Object.assign(pages.loans, { source: 'figures', filters: [] })],
  ['E051 loans.rowActions.decide.confirm', onRow({ confirm: 'Approve {colour}?' })],
  ['E051 loans.rowActions.decide.when', onRow({ when: { field: 'colour', is: 1 } })],
  ['E051 loans.actions.importAll.confirm', pages => Object.assign(pages.loans, { actions: [{ route: 'importAll', confirm: '{state}?' }] })],
  ['E051 loan.heading', pages => Object.assign(pages.loan, { heading: 'Loan of {colour}' })],
  [
    'E051 loan.actions.decide.confirm',
    pages => Object.assign(pages.loan, { actions: [{ route: 'decide', confirm: 'Decline {colour}?' }] }),
  ],
  ['E051 loan.tabs.0.fields', pages => Object.assign(pages.loan, { tabs: [{ label: 'x', kind: 'detail', fields: column('colour') }] })],
  ['E051 figures.items', pages => Object.assign(pages.figures, { items: column('closed') })],
  ['E051 curve.x', pages => Object.assign(pages.curve, { x: 'at' })],
  ['E051 curve.series', pages => Object.assign(pages.curve, { series: column('colour') })],
  ['E051 curve.source', pages => Object.assign(pages.curve, { source: 'figures' })],
  ['E052 loans.live', pages => Object.assign(pages.loans, { live: ['bank:bank:loan:lost'] })],
  ['E052 loans.live', pages => Object.assign(pages.loans, { live: ['platform:nobody:thing:made'] })],
  ['E053 loans.rowActions.decide.then', onRow({ then: { page: 'nothing' } })],
  ['E053 loans.rowActions.decide.then', onRow({ then: { page: 'loan' } })],
  ['E054 loans.rowActions', onRow({ route: 'importAll' })],
  ['E054 figures.source', pages => Object.assign(pages.figures, { source: 'getLoan' })],
  ['E056 loans.icon', pages => Object.assign(pages.loans, { icon: 'unicorn' })],
  ['E056 loans.kind', pages => Object.assign(pages.loans, { kind: 'list' })],
  ['E056 loans.scope', pages => Object.assign(pages.loans, { scope: 'world' })],
  ['E056 loans.group', pages => Object.assign(pages.loans, { group: '' })],
  ['E056 loans.refresh', pages => Object.assign(pages.loans, { refresh: 0 })],
  ['E056 loans.columns.state.as', pages => Object.assign(pages.loans, { columns: [{ field: 'state', label: 'x', as: 'picture' }] })],
  [
    'E056 loans.columns.state.tones',
    pages => Object.assign(pages.loans, { columns: [{ field: 'state', label: 'x', tones: { a: 'red' } }] }),
  ],
  ['E056 loans.rowActions.decide.tone', onRow({ tone: 'red' })],
  ['E056 curve.chart', pages => Object.assign(pages.curve, { chart: 'donut' })],
  ['E057 loans.sort', pages => Object.assign(pages.loans, { sort: ['applicant'] })],
  ['E051 loans.sort', pages => Object.assign(pages.loans, { sort: ['colour'] })],
  ['E053 loan.fields.state.link', pages => Object.assign(pages.loan, { fields: [{ field: 'state', label: 'x', link: { page: 'none' } }] })],
  [
    'E053 figures.items.open.link',
    pages => Object.assign(pages.figures, { items: [{ field: 'open', label: 'x', link: { page: 'loan' } }] }),
  ],
  ['E057 loans.filters', pages => Object.assign(pages.loans, { filters: ['colour'] })],
  ['E057 loans.rowActions.decide.body', onRow({ body: { colour: true } })],
  [
    'E057 loan.tabs.0.by',
    pages => Object.assign(pages.loan, { tabs: [{ kind: 'table', source: 'listLoans', by: 'colour', columns: [] }] }),
  ],
  ['E058 bank.routes.decide.body.approve', asking({ widget: 'secret' })],
  ['E059 bank.routes.decide.body.approve', asking({ optionsFrom: 'nothing' })],
  ['E059 bank.routes.decide.body.approve', asking({ optionsFrom: 'figures' })],
  ['E059 bank.routes.decide.body.approve', asking({ optionsFrom: 'getLoan' })],
])('%s', (finding, change) => {
  expect(faults(change)).toContain(finding);
});

test('the event of another service is one that the service declares, where it is known', () => {
  const listening = (pages: Draft) => Object.assign(pages.loans, { live: ['bank:post:letter:sent'] });
  const neighbour = (name: string) => new Map([['post', { ...good, id: 'post', events: { [name]: {} } } as unknown as Manifest]]);
  expect(faults(listening, neighbour('bank:post:letter:sent'))).toEqual([]);
  expect(faults(listening, neighbour('bank:post:letter:lost'))).toEqual(['E052 loans.live']);
});

test('every page of the platform and of the vertical beside it passes', async () => {
  const root = fileURLToPath(new URL('../../../', import.meta.url));
  const { services } = JSON.parse(readFileSync(`${root}catalog/platform.json`, 'utf8')) as { services: { package: string }[] };
  const folders = [...services.map(service => `plugins/${service.package}`), 'e2e/verticals/lending'];
  const manifests = await Promise.all(folders.map(async folder => (await readPlugin(root + folder)).manifest));
  const known = new Map(manifests.map(manifest => [manifest.id, manifest]));
  const errors = manifests.flatMap(manifest => checkManifest(manifest, known)).filter(({ id }) => id.startsWith('E'));
  expect(errors.map(formatFinding)).toEqual([]);
});
