import {
  type AnyRoute,
  type BoardSection,
  type ColumnDecl,
  type LinkDecl,
  type PageAction,
  type PageDecl,
  type RecordTab,
  type RowAction,
  recordParameter,
} from '@platform/sdk';
import type { Manifest } from '../../base/manifest.ts';
import { bodyFields, filterField, type Node } from './page-fields.ts';
import type { PageDefinition, WireAction, WireColumn, WireLink, WireSection, WireSource, WireTable } from './page-schema.ts';
import { policySections } from './policy-page.ts';
import { workSections } from './work-page.ts';

/** A part that shows figures, before it is known where it stands. */
type FigureSection = WithoutHead<Extract<WireSection, { kind: 'detail' | 'stats' | 'chart' | 'notice' }>>;
type WithoutHead<Part> = Part extends unknown ? Omit<Part, 'id' | 'title' | 'when'> : never;
type RecordPage = Extract<PageDecl, { kind: 'record' }>;
type TablePage = Extract<PageDecl, { kind: 'table' | 'feed' }>;
/** A table wherever it stands: alone, on a board, on a record. */
type Table = Pick<
  TablePage,
  | 'source'
  | 'key'
  | 'columns'
  | 'search'
  | 'filters'
  | 'sort'
  | 'empty'
  | 'rowDetail'
  | 'open'
  | 'rowActions'
  | 'bulkActions'
  | 'update'
  | 'remove'
>;

/** Turns an author's page into the wire form the console draws (G-K-18): labels and schemas resolved, no code, no expression. */
export function pageDefinition(manifest: Manifest, name: string): PageDefinition | undefined {
  const page = manifest.pages[name];
  if (!page) return undefined;
  return {
    schema: 'platform.admin-ui/1',
    service: manifest.id,
    page: name,
    title: page.title,
    ...(page.description ? { description: page.description } : {}),
    scope: page.scope ?? 'env',
    ...parameters(manifest, page),
    ...reading(manifest, page),
    sections: sections(manifest, name, page),
  };
}

/** What the page's address says: the id of a record, and what the author declares. */
function parameters(manifest: Manifest, page: PageDecl): Pick<PageDefinition, 'params'> {
  const own = page.kind === 'record' ? [{ name: recordParameter(manifest, page), required: true }] : [];
  const params = [...own, ...(page.params ?? [])];
  return params.length > 0 ? { params } : {};
}

/** What a source is asked with: the parameters of the page that its route knows. */
function sourceOf(manifest: Manifest, page: PageDecl, route: string | undefined, resource: string): WireSource {
  const known = manifest.routes[route ?? '']?.options.query ?? {};
  const asked = (page.params ?? []).filter(({ name }) => name in known).map(({ name }) => [name, `{${name}}`] as const);
  return { resource, ...(asked.length > 0 ? { query: Object.fromEntries(asked) } : {}) };
}

/** When a page is read again: by itself, or as often as what its tabs show asks for. */
function reading(manifest: Manifest, page: PageDecl): Pick<PageDefinition, 'live_types' | 'refresh_s'> {
  const shown = [page, ...(page.kind === 'tabs' ? page.tabs.flatMap(({ page: inner }) => manifest.pages[inner] ?? []) : [])];
  const live = [...new Set(shown.flatMap(each => each.live ?? []))];
  const refresh = shown.flatMap(each => each.refresh ?? []);
  return { ...(live.length > 0 ? { live_types: live } : {}), ...(refresh.length > 0 ? { refresh_s: Math.min(...refresh) } : {}) };
}

function sections(manifest: Manifest, name: string, page: PageDecl): WireSection[] {
  switch (page.kind) {
    case 'table':
    case 'feed':
      return tablePage(manifest, name, page);
    case 'record':
      return recordPage(manifest, name, page);
    case 'board':
      return page.sections.map((section, index) => boardSection(manifest, name, page, section, `${name}-${index}`));
    case 'detail':
    case 'stats':
    case 'chart':
    case 'text':
      return [{ id: name, ...figureSection(page, sourceOf(manifest, page, 'source' in page ? page.source : undefined, name)) }];
    case 'form':
      return [
        {
          id: name,
          kind: 'form',
          ...(page.source ? { source: sourceOf(manifest, page, page.source, `${name}/initial`) } : {}),
          fields: bodyFields(manifest.routes[page.submit]),
          submit: { id: 'submit', label: summaryOf(manifest, page.submit, 'Save'), resource: name, then: 'toast' },
        },
      ];
    case 'policy':
      return policySections(manifest.id, page.only);
    case 'work':
      return workSections(manifest);
    case 'tabs':
      return [
        {
          id: name,
          kind: 'tabs',
          tabs: page.tabs.map(({ label, page: inner }) => ({
            label,
            sections: manifest.pages[inner] ? sections(manifest, inner, manifest.pages[inner]) : [],
          })),
        },
      ];
  }
}

function tablePage(manifest: Manifest, name: string, page: TablePage): WireSection[] {
  const above: WireAction[] = [
    ...(page.create
      ? [formAction(manifest, page.create, { id: 'create', label: summaryOf(manifest, page.create, 'Create'), resource: name })]
      : []),
    ...(page.actions ?? []).map(action => actionOf(manifest, name, action)),
  ];
  return [
    ...actionsSection(`${name}-create`, above),
    { id: name, ...tableSection(manifest, page, name, sourceOf(manifest, page, page.source, name)) },
  ];
}

const actionsSection = (id: string, actions: WireAction[]): WireSection[] => (actions.length > 0 ? [{ id, kind: 'actions', actions }] : []);

function tableSection(manifest: Manifest, table: Table, page: string, source: WireSource): WireTable {
  const listed = manifest.routes[table.source] as AnyRoute;
  const key = table.key ?? rowKey(manifest, table.source) ?? 'id';
  const rowActions = (table.rowActions ?? []).map(action => rowAction(manifest, `${page}/{row.${key}}`, action));
  if (table.update)
    rowActions.push(formAction(manifest, table.update, { id: 'update', label: 'Edit', resource: `${page}/{row.${key}}/update` }));
  if (table.remove)
    rowActions.push({
      id: 'delete',
      label: 'Delete',
      resource: `${page}/{row.${key}}/delete`,
      confirm: 'Delete this for good?',
      tone: 'bad',
      then: 'reload',
    });
  const link = table.open ? linkTo(manifest, table.open, key) : undefined;
  return {
    kind: 'table',
    source: { ...source, paged: 'cursor' in (listed.options.query ?? {}) },
    row_key: key,
    columns: table.columns.map((each, index) => ({
      ...column(each),
      ...(each.history ? { history: each.history } : {}),
      ...(index === 0 && link && !each.link ? { link } : {}),
      ...(table.sort?.includes(each.field) ? { sort: true as const } : {}),
    })),
    filters: [...(table.search ? [table.search] : []), ...(table.filters ?? [])].flatMap(name => {
      const schema = listed.options.query?.[name] as Node | undefined;
      return schema ? [filterField(name, name === table.search ? { title: 'Search', ...schema } : schema)] : [];
    }),
    row_actions: rowActions,
    ...(table.bulkActions ? { bulk_actions: table.bulkActions.map(action => rowAction(manifest, `${page}/{row.${key}}`, action)) } : {}),
    ...(table.rowDetail ? { row_detail: table.rowDetail.map(column) } : {}),
    empty: table.empty ?? 'Nothing here yet.',
  };
}

function linkTo(manifest: Manifest, page: string, key: string): WireLink | undefined {
  const target = manifest.pages[page];
  return target?.kind === 'record' ? { page, params: { [recordParameter(manifest, target)]: `{row.${key}}` } } : undefined;
}

function recordPage(manifest: Manifest, name: string, page: RecordPage): WireSection[] {
  const id = recordParameter(manifest, page);
  const base = `${name}/{${id}}`;
  const head: WireSection = {
    id: name,
    ...(page.heading ? { title: named(page.heading) } : {}),
    kind: 'detail',
    source: { resource: base },
    fields: page.fields.map(column),
    actions: (page.actions ?? []).map(action => rowAction(manifest, base, action)),
  };
  const tabs = (page.tabs ?? []).map((tab, index) => ({
    label: tab.label,
    sections: recordTab(manifest, name, id, tab, `${name}-tab-${index}`),
  }));
  return [head, ...(tabs.length > 0 ? [{ id: `${name}-tabs`, kind: 'tabs' as const, tabs }] : [])];
}

function recordTab(manifest: Manifest, page: string, id: string, tab: RecordTab, at: string): WireSection[] {
  const base = `${page}/{${id}}`;
  const source =
    tab.source === undefined
      ? { resource: base }
      : tab.by
        ? { resource: `${page}/${tab.source}`, query: { [tab.by]: `{${id}}` } }
        : { resource: `${base}/${tab.source}` };
  if (tab.kind === 'detail') return [{ id: at, kind: 'detail', source, fields: tab.fields.map(column) }];
  const above = tab.create ? [rowAction(manifest, base, tab.create)] : [];
  return [...actionsSection(`${at}-create`, above), { id: at, ...tableSection(manifest, tab, page, source) }];
}

function boardSection(manifest: Manifest, name: string, page: PageDecl, section: BoardSection, id: string): WireSection {
  const titled = { id, ...(section.title ? { title: section.title } : {}) };
  const route = 'source' in section ? section.source : undefined;
  const source = sourceOf(manifest, page, route, route === undefined ? name : `${name}/${route}`);
  return section.kind === 'table'
    ? { ...titled, ...tableSection(manifest, section, name, source) }
    : { ...titled, ...figureSection(section, source) };
}

function figureSection(section: Exclude<BoardSection, { kind: 'table' }>, source: WireSource): FigureSection {
  switch (section.kind) {
    case 'detail':
      return { kind: 'detail', source, fields: section.fields.map(column) };
    case 'stats':
      return {
        kind: 'stats',
        source,
        items: section.items.map(({ trend, history, ...item }) => ({
          ...column(item),
          ...(trend ? { trend } : {}),
          ...(history ? { history } : {}),
        })),
      };
    case 'chart':
      return {
        kind: 'chart',
        chart: section.chart,
        source,
        x: section.x,
        series: section.series.map(({ field: value, label }) => ({ label, value })),
        ...(section.unit ? { unit: section.unit } : {}),
      };
    case 'text':
      return { kind: 'notice', tone: 'info', text: section.text };
  }
}

function column({ field: value, label, as, tones, link }: ColumnDecl): WireColumn {
  return {
    label,
    value,
    ...(as ? { format: as === 'status' ? 'badge' : as } : {}),
    ...(tones ? { tone_map: tones } : {}),
    ...(link ? { link: wireLink(link) } : {}),
  };
}

/** What an author writes as `{name}` is a member of the row. */
const named = (text: string): string => text.replaceAll(/\{(?!row\.)([a-z_][\w.]*)\}/gi, '{row.$1}');

const summaryOf = (manifest: Manifest, route: string, otherwise = route): string => manifest.routes[route]?.options.summary ?? otherwise;

function rowAction(manifest: Manifest, base: string, declared: string | RowAction): WireAction {
  const action: RowAction = typeof declared === 'string' ? { route: declared, label: summaryOf(manifest, declared) } : declared;
  const { confirm, then } = action;
  return actionOf(manifest, base, {
    ...action,
    ...(confirm ? { confirm: named(confirm) } : {}),
    ...(typeof then === 'object' ? { then: wireLink(then) } : {}),
  });
}

/** Where a link leads; what an author writes as `{name}` is a member of the row. */
function wireLink({ params, ...link }: LinkDecl): WireLink {
  return { ...link, ...(params ? { params: Object.fromEntries(Object.entries(params).map(([name, text]) => [name, named(text)])) } : {}) };
}

function actionOf(manifest: Manifest, base: string, { route, when, then = 'reload', body, ...action }: PageAction): WireAction {
  const made: WireAction = {
    ...action,
    id: route,
    resource: `${base}/${route}`,
    ...(when ? { when: { path: when.field, op: 'eq', value: when.is } } : {}),
    then,
  };
  if (body) return { ...made, body };
  return manifest.routes[route]?.options.body ? formAction(manifest, route, made) : made;
}

/** An action whose route has a body opens a form made from its schema (day-one, Plugins). */
function formAction(manifest: Manifest, route: string, action: WireAction): WireAction {
  return { then: 'reload', ...action, form: bodyFields(manifest.routes[route]) };
}

/** The member of a row that fills the path parameter of its actions: the first required member ending in `_id`. */
function rowKey(manifest: Manifest, route: string): string | undefined {
  const items = (manifest.routes[route]?.options.returns as Node | undefined)?.properties?.['items'] as
    | (Node & { items?: Node })
    | undefined;
  return items?.items?.required?.find(name => name.endsWith('_id'));
}
