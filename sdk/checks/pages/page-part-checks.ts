import { CHARTS, type ColumnDecl, FORMATS, type Manifest, TONES } from '@platform/sdk';
import { type AnswerSchema, itemOf } from './answer-members.ts';
import type { AddFinding } from '../finding.ts';
import { actionsOf, checkActions } from './page-action-checks.ts';
import { type PagePart, requireMember, requireNamed, requireOneOf, type Shown } from './page-part.ts';

const ID = /\{\*?[A-Za-z_]+\}/;

export function checkPart(manifest: Manifest, place: PagePart, add: AddFinding): void {
  const { where, part } = place;
  for (const member of ['source', 'submit', 'create', 'update', 'remove'] as const) {
    const route = (part as unknown as Record<string, unknown>)[member];
    if (typeof route === 'string') requireRoute(manifest, route, `${where}.${member}`, add);
  }
  for (const [member, { route }] of actionsOf(manifest, part)) requireRoute(manifest, route, `${where}.${member}`, add);
  checkSource(manifest, place, add);
  const shown = shownBy(manifest, place, add);
  if (shown) {
    checkMembers(part, shown, where, add);
    checkRows(manifest, part, shown, where, add);
    checkSort(manifest, part, shown, where, add);
  }
  checkActions(manifest, part, shown, where, add);
}

function requireRoute(manifest: Manifest, route: string, where: string, add: AddFinding): void {
  if (!(route in manifest.routes)) add('E050', where, `No route '${route}'.`, `Use one of: ${Object.keys(manifest.routes).join(', ')}.`);
}

/** Who gives the source its id: a record's address does, a list is asked without (E054); filters are members of its query (E057). */
function checkSource(manifest: Manifest, { where, part, alone }: PagePart, add: AddFinding): void {
  const source = 'source' in part && part.source !== undefined ? manifest.routes[part.source] : undefined;
  if (!source || !('source' in part)) return;
  const by = 'by' in part ? part.by : undefined;
  const asked = part.kind === 'record' || (!alone && by === undefined);
  if (asked && !ID.test(source.path))
    add('E054', `${where}.source`, `${part.source} takes no id in its path.`, "Give the route a path such as '/v1/loans/{loan_id}'.");
  if (!asked && ID.test(source.path))
    add(
      'E054',
      `${where}.source`,
      `${part.source} asks for an id in its path, and nobody gives it.`,
      'Use a route without one, or a record.',
    );
  const query = Object.keys(source.options.query ?? {});
  const search = 'search' in part ? part.search : undefined;
  const sent = [
    ...filtersOf(part).map(filter => ['filters', filter] as const),
    ...(by === undefined ? [] : [['by', by] as const]),
    ...(search === undefined ? [] : [['search', search] as const]),
  ];
  for (const [member, name] of sent)
    if (!query.includes(name))
      add('E057', `${where}.${member}`, `${part.source} has no query member '${name}'.`, `Use one of: ${query.join(', ') || '(none)'}.`);
}

/** Columns that sort are members of the row, and values of the source's `sort` (E051, E057). */
function checkSort(manifest: Manifest, part: PagePart['part'], shown: Shown, where: string, add: AddFinding): void {
  if (!('sort' in part) || !('columns' in part) || part.sort === undefined) return;
  const { sort, order } = (manifest.routes[part.source]?.options.query ?? {}) as Record<string, AnswerSchema | undefined>;
  const taken = (sort?.enum ?? []).map(String);
  for (const name of part.sort) {
    requireMember(shown, name, `${where}.sort`, add);
    if (!part.columns.some(({ field }) => field === name))
      add('E051', `${where}.sort`, `No column shows '${name}'.`, `Use one of: ${part.columns.map(({ field }) => field).join(', ')}.`);
    if (!order || !taken.includes(name))
      add('E057', `${where}.sort`, `${part.source} does not sort by '${name}'.`, `Give its query \`...SortQuery('${name}')\`.`);
  }
}

const filtersOf = (part: PagePart['part']): readonly string[] => ('filters' in part ? (part.filters ?? []) : []);

/** What the part draws: one item of a list, or the record. Nothing where a route is missing, which is said elsewhere. */
export function shownBy(manifest: Manifest, { where, part, record }: PagePart, add: AddFinding): Shown | undefined {
  const name = 'source' in part ? part.source : undefined;
  if (name === undefined) return record && { schema: record, whose: 'Answers of the record' };
  const route = manifest.routes[name];
  if (!route) return undefined;
  const answer = (route.options.returns ?? {}) as AnswerSchema;
  if (part.kind !== 'table' && part.kind !== 'feed' && part.kind !== 'chart') return { schema: answer, whose: `Answers of ${name}` };
  const item = itemOf(answer);
  if (!item) add('E051', `${where}.source`, `${name} answers no list.`, 'Use a route that returns a `Page`, or a list under `items`.');
  return item && { schema: item, whose: `Rows of ${name}` };
}

function checkMembers(part: PagePart['part'], shown: Shown, where: string, add: AddFinding): void {
  const columns: [string, readonly ColumnDecl[]][] = [
    ['columns', 'columns' in part ? part.columns : []],
    ['rowDetail', 'rowDetail' in part ? (part.rowDetail ?? []) : []],
    ['fields', 'fields' in part ? part.fields : []],
    ['items', part.kind === 'stats' ? part.items : []],
  ];
  for (const [member, decls] of columns)
    for (const { field, as, tones } of decls) {
      requireMember(shown, field, `${where}.${member}`, add);
      requireOneOf(FORMATS, as, `${where}.${member}.${field}.as`, add);
      for (const tone of Object.values(tones ?? {})) requireOneOf(TONES, tone, `${where}.${member}.${field}.tones`, add);
    }
  for (const { trend } of part.kind === 'stats' ? part.items : [])
    if (trend !== undefined) requireMember(shown, trend, `${where}.items`, add);
  if (part.kind === 'record') requireNamed(shown, part.heading, `${where}.heading`, add);
  if (part.kind !== 'chart') return;
  requireOneOf(CHARTS, part.chart, `${where}.chart`, add);
  requireMember(shown, part.x, `${where}.x`, add);
  for (const { field } of part.series) requireMember(shown, field, `${where}.series`, add);
}

/** The key of a row, where something needs it, and the record that a row leads to (E051, E053). */
function checkRows(manifest: Manifest, part: PagePart['part'], shown: Shown, where: string, add: AddFinding): void {
  if (!('columns' in part)) return;
  const acts = ['update', 'remove', 'open', 'rowActions', 'bulkActions'].some(member => member in part);
  const guessed = shown.schema.required?.find(name => name.endsWith('_id')) ?? 'id';
  if (part.key !== undefined || acts) requireMember(shown, part.key ?? guessed, `${where}.key`, add);
  if (part.open !== undefined && manifest.pages[part.open]?.kind !== 'record')
    add(
      'E053',
      `${where}.open`,
      `'${part.open}' is no page of kind record.`,
      `Use one of: ${recordsOf(manifest).join(', ') || '(none declared)'}.`,
    );
}

const recordsOf = (manifest: Manifest): string[] =>
  Object.entries(manifest.pages).flatMap(([name, { kind }]) => (kind === 'record' ? [name] : []));
