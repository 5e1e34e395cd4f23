import type { RegisteredAction } from './action-registry.ts';

export interface ActionCall {
  readonly path: string;
  readonly headers: Record<string, string>;
  readonly body: string | null;
}

/**
 * Where the parameters of an action go: into the path, and the rest into the query of a read or removal, or into a JSON body. `undefined`
 * when one of them is no path segment.
 */
export function actionCall(
  { method, path: template }: Pick<RegisteredAction, 'method' | 'path'>,
  params: Readonly<Record<string, unknown>>,
): ActionCall | undefined {
  const rest = { ...params };
  let fits = true;
  const path = template.replaceAll(/\{([A-Za-z0-9_]+)\}/g, (_, name: string) => {
    const value = params[name];
    delete rest[name];
    const text = typeof value === 'string' || typeof value === 'number' ? String(value) : '';
    // A dot segment would lead to another path than the registered one.
    if (text === '' || text === '.' || text === '..') fits = false;
    return encodeURIComponent(text);
  });
  if (!fits) return undefined;
  const accept = { accept: 'application/json' };
  if (method === 'POST' || method === 'PUT')
    return { path, headers: { ...accept, 'content-type': 'application/json' }, body: JSON.stringify(rest) };
  const query = new URLSearchParams(
    Object.entries(rest).map(([name, value]) => [name, typeof value === 'string' ? value : JSON.stringify(value)]),
  );
  return { path: query.size === 0 ? path : `${path}?${query}`, headers: accept, body: null };
}
