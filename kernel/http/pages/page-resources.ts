import { type AnyRoute, gateActions, type PageDecl, type RowAction } from '@platform/sdk';
import type { Manifest } from '../../base/manifest.ts';

/** One further path of a route, for page data: `{id}` of the path becomes the route's own parameter. */
export interface PageResource {
  readonly method: 'GET' | 'POST';
  readonly path: string;
  readonly operation: string;
  readonly idParameter?: string;
  readonly target: 'required' | 'optional';
}
/** `path` stands behind `/v1/admin/`. */
type Named = readonly [method: 'GET' | 'POST', path: string, route: string | undefined];

const routeOf = (action: string | RowAction): string => (typeof action === 'string' ? action : action.route);

/** Data and mutations of pages, as further paths of the routes they name (G-K-18): reads by GET, everything else by POST (KRN-019). */
export function pageResources(manifest: Manifest): PageResource[] {
  const made = new Map<string, PageResource>();
  const add = (target: PageResource['target'], [method, path, operation]: Named) => {
    if (operation === undefined || made.has(`${method} ${path}`)) return;
    const parameter = /\{([a-z_]+)\}/i.exec(manifest.routes[operation]?.path ?? '')?.[1];
    made.set(`${method} ${path}`, {
      method,
      path: `/v1/admin/${path}`,
      operation,
      target,
      ...(path.includes('{id}') && parameter ? { idParameter: parameter } : {}),
    });
  };
  for (const [name, page] of Object.entries(manifest.pages)) {
    // The console names the environment of every page, the system's for a page of the platform (G-K-11, F-25).
    for (const named of namedBy(name, page)) add(page.scope === 'org' ? 'optional' : 'required', named);
  }
  for (const route of choiceRoutes(manifest)) add('optional', ['GET', `options/${route}`, route]);
  return [...made.values()];
}

function namedBy(name: string, page: PageDecl): Named[] {
  switch (page.kind) {
    case 'form':
      return [
        ['GET', `${name}/initial`, page.source],
        ['POST', name, page.submit],
      ];
    case 'table':
    case 'feed':
      return [
        ['GET', name, page.source],
        ['POST', name, page.create],
        ['POST', `${name}/{id}/update`, page.update],
        ['POST', `${name}/{id}/delete`, page.remove],
        ...(page.actions ?? []).map(({ route }): Named => ['POST', `${name}/${route}`, route]),
        ...rowsOf(name, [...(page.rowActions ?? []), ...(page.bulkActions ?? [])]),
      ];
    case 'record':
      return [
        ['GET', `${name}/{id}`, page.source],
        ...rowsOf(name, page.actions ?? []),
        ...(page.tabs ?? []).flatMap(tab => tabResources(name, tab)),
      ];
    case 'board':
      return page.sections.flatMap(section =>
        'source' in section
          ? [
              ['GET', `${name}/${section.source}`, section.source] as Named,
              ...(section.kind === 'table' ? rowsOf(name, section.rowActions ?? []) : []),
            ]
          : [],
      );
    default:
      return 'source' in page ? [['GET', name, page.source]] : [];
  }
}

const rowsOf = (name: string, actions: readonly (string | RowAction)[]): Named[] =>
  actions.map(action => ['POST', `${name}/{id}/${routeOf(action)}`, routeOf(action)]);

function tabResources(name: string, tab: NonNullable<Extract<PageDecl, { kind: 'record' }>['tabs']>[number]): Named[] {
  const source: Named[] =
    tab.source === undefined ? [] : [['GET', tab.by ? `${name}/${tab.source}` : `${name}/{id}/${tab.source}`, tab.source]];
  return tab.kind === 'table' ? [...source, ...rowsOf(name, [...(tab.rowActions ?? []), ...(tab.create ? [tab.create] : [])])] : source;
}

/** Routes whose items are the choices of some control. */
function choiceRoutes(manifest: Manifest): string[] {
  const found = new Set<string>();
  const look = (node: unknown): void => {
    if (typeof node !== 'object' || node === null) return;
    const { optionsFrom } = node as { optionsFrom?: unknown };
    if (typeof optionsFrom === 'string') found.add(optionsFrom);
    for (const inner of Object.values(node)) look(inner);
  };
  for (const { options } of Object.values(manifest.routes)) look([options.body, options.query]);
  return [...found];
}

/** The actions of which a caller needs one to be shown a page. */
export function gatesOfPage(manifest: Manifest, name: string): readonly string[] {
  const page = manifest.pages[name];
  if (!page) return [];
  if (page.kind === 'policy') return [`${manifest.id}:policy:read`, `${manifest.id}:policy:admin`];
  if (page.kind === 'work') return [`${manifest.id}:work:read`, `${manifest.id}:work:admin`];
  if (page.kind === 'tabs') return page.tabs.flatMap(({ page: inner }) => gatesOfPage(manifest, inner));
  if (page.kind === 'board')
    return [...new Set(page.sections.flatMap(section => ('source' in section ? gatesOf(manifest.routes[section.source]) : [])))];
  return gatesOf(manifest.routes['source' in page && page.source ? page.source : 'submit' in page ? page.submit : '']);
}

const gatesOf = (route: AnyRoute | undefined): readonly string[] => (route ? (gateActions(route.options.gate) ?? []) : []);

export const pageGates = (manifest: Manifest): readonly string[] => [
  ...new Set(Object.keys(manifest.pages).flatMap(name => gatesOfPage(manifest, name))),
];
