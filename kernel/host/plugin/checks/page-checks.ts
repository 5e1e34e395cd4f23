import type { BoardSection, ColumnDecl, PageDecl, RecordTab, RowAction } from '@platform/sdk';
import type { Manifest } from '../../../base/manifest.ts';
import type { AddFinding } from './finding.ts';

type Returned = { properties?: Record<string, unknown> & { items?: { items?: { properties?: object } } } } | undefined;
type Part = BoardSection | RecordTab | PageDecl;

/** Checks what pages name: routes, members of rows, events, other pages. A page that passes opens in a browser. */
export function checkPages(manifest: Manifest, add: AddFinding): void {
  const { inbox, firstSteps } = manifest;
  if (firstSteps !== undefined && !(firstSteps.page in manifest.pages))
    add('E055', 'firstSteps.page', `No page '${firstSteps.page}'.`, `Use one of: ${Object.keys(manifest.pages).join(', ')}.`);
  if (inbox) {
    for (const member of ['list', 'unread', 'read', 'readAll'] as const)
      if (!(inbox[member] in manifest.routes))
        add('E055', `inbox.${member}`, `No route '${inbox[member]}'.`, `Use one of: ${Object.keys(manifest.routes).join(', ')}.`);
    if (inbox.settings !== undefined && !(inbox.settings in manifest.pages))
      add('E055', 'inbox.settings', `No page '${inbox.settings}'.`, `Use one of: ${Object.keys(manifest.pages).join(', ')}.`);
  }
  for (const [name, page] of Object.entries(manifest.pages)) {
    const where = `pages.${name}`;
    checkPart(manifest, where, page, add);
    if (page.kind === 'record') {
      checkRecord(manifest, where, page, add);
      for (const [index, tab] of (page.tabs ?? []).entries()) checkPart(manifest, `${where}.tabs.${index}`, tab, add);
    }
    if (page.kind === 'board')
      for (const [index, section] of page.sections.entries()) checkPart(manifest, `${where}.sections.${index}`, section, add);
    if (page.kind === 'tabs')
      for (const { page: inner } of page.tabs)
        if (!(inner in manifest.pages))
          add('E053', `${where}.tabs`, `No page '${inner}'.`, `Use one of: ${Object.keys(manifest.pages).join(', ')}.`);
    for (const event of page.live ?? [])
      if (event.startsWith(`${manifest.vertical}:${manifest.id}:`) && !(event in manifest.events))
        add('E052', `${where}.live`, `No event '${event}'.`, 'Declare it under `events`.');
  }
}

function checkPart(manifest: Manifest, where: string, part: Part, add: AddFinding): void {
  for (const [member, target] of routesNamed(part))
    if (!(target in manifest.routes))
      add('E050', `${where}.${member}`, `No route '${target}'.`, `Use one of: ${Object.keys(manifest.routes).join(', ')}.`);
  if (part.kind !== 'table' && part.kind !== 'feed') return;
  const row = (manifest.routes[part.source]?.options.returns as Returned)?.properties?.items?.items?.properties;
  requireMembers(row, [...part.columns, ...(part.rowDetail ?? [])], `Rows of ${part.source}`, `${where}.columns`, add);
  if (part.open !== undefined && manifest.pages[part.open]?.kind !== 'record')
    add(
      'E053',
      `${where}.open`,
      `'${part.open}' is no page of kind record.`,
      `Use one of: ${recordsOf(manifest).join(', ') || '(none declared)'}.`,
    );
}

/** A record's source is asked by the path parameter that its row gives. */
function checkRecord(manifest: Manifest, where: string, page: Extract<PageDecl, { kind: 'record' }>, add: AddFinding): void {
  const source = manifest.routes[page.source];
  if (!source) return;
  if (!/\{[A-Za-z_]+\}/.test(source.path))
    add('E054', `${where}.source`, `${page.source} takes no id in its path.`, "Give the route a path such as '/v1/loans/{loan_id}'.");
  requireMembers((source.options.returns as Returned)?.properties, page.fields, `What ${page.source} answers`, `${where}.fields`, add);
}

function requireMembers(known: object | undefined, columns: readonly ColumnDecl[], whose: string, where: string, add: AddFinding): void {
  if (!known) return;
  for (const { field } of columns)
    if (field !== '' && !((field.split('.')[0] as string) in known))
      add('E051', where, `${whose} have no member '${field}'.`, `Use one of: ${Object.keys(known).join(', ')}.`);
}

const recordsOf = (manifest: Manifest): string[] =>
  Object.entries(manifest.pages).flatMap(([name, { kind }]) => (kind === 'record' ? [name] : []));

function routesNamed(part: Part): [member: string, route: string][] {
  const single = ['source', 'submit', 'create', 'update', 'remove'].flatMap((member): [string, string][] => {
    const value = (part as unknown as Record<string, unknown>)[member];
    return typeof value === 'string' ? [[member, value]] : [];
  });
  const several = ['actions', 'rowActions', 'bulkActions'].flatMap((member): [string, string][] => {
    const value = (part as unknown as Record<string, readonly (string | RowAction)[] | undefined>)[member] ?? [];
    return value.map(action => [member, typeof action === 'string' ? action : action.route]);
  });
  return [...single, ...several];
}
