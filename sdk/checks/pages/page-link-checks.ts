import { type ColumnDecl, type LinkDecl, type Manifest, recordParameter } from '@platform/sdk';
import type { AddFinding } from '../finding.ts';
import { actionsOf } from './page-action-checks.ts';
import { type PagePart, parametersOf, requireNamed } from './page-part.ts';
import { shownBy } from './page-part-checks.ts';

/** Where columns and actions lead: a page that is there, with every parameter that it needs, from members of the row (E051, E053). */
export function checkLinks(manifest: Manifest, known: ReadonlyMap<string, Manifest>, place: PagePart, add: AddFinding): void {
  const { where, part } = place;
  const shownIn: Readonly<Record<string, readonly ColumnDecl[]>> = {
    columns: 'columns' in part ? part.columns : [],
    rowDetail: 'rowDetail' in part ? (part.rowDetail ?? []) : [],
    fields: 'fields' in part ? part.fields : [],
    items: part.kind === 'stats' ? part.items : [],
  };
  const row = shownBy(manifest, place, () => undefined);
  // What is done to the page as a whole has no row, but the parameters of the page.
  const page = { schema: { properties: Object.fromEntries(parametersOf(part).map(name => [name, {}])) }, whose: 'Parameters of the page' };
  const links = [
    ...Object.entries(shownIn).flatMap(([member, decls]) =>
      decls.map(({ field, link }) => [`${where}.${member}.${field}.link`, link, row] as const),
    ),
    ...actionsOf(manifest, part).map(([member, { route, then }]) => {
      const shown = member === 'actions' && part.kind !== 'record' ? page : row;
      return [`${where}.${member}.${route}.then`, then, shown] as const;
    }),
  ];
  for (const [at, link, shown] of links) {
    if (typeof link !== 'object') continue;
    checkPage(manifest, known, link, at, add);
    if (shown) for (const text of Object.values(link.params ?? {})) requireNamed(shown, text, at, add);
  }
}

function checkPage(manifest: Manifest, known: ReadonlyMap<string, Manifest>, link: LinkDecl, where: string, add: AddFinding): void {
  const { service = manifest.id, page: name, params = {} } = link;
  const target = service === manifest.id ? manifest : known.get(service);
  if (!target) {
    // Of a neighbour of which there is only the contract nothing is known but its name (as for E021).
    if (!(service in manifest.uses)) add('E053', where, `No service '${service}'.`, 'Name it under `uses`.');
    return;
  }
  const page = target.pages[name];
  if (!page) return add('E053', where, `${service} has no page '${name}'.`, `Use one of: ${Object.keys(target.pages).join(', ')}.`);
  const needed = [
    ...(page.kind === 'record' ? [recordParameter(target, page)] : []),
    ...(page.params ?? []).flatMap(({ name: each, required }) => (required ? [each] : [])),
  ].filter(each => !(each in params));
  if (needed.length > 0) add('E053', where, `The page '${name}' needs ${needed.join(' and ')}.`, 'Give it under `params` of the link.');
}
