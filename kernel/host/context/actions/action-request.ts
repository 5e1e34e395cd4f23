import type { PermittedCall, RegisteredAction } from '@platform/sdk';

/** Where the parameters of an action go. */
export interface ActionRequest {
  readonly pathParams: Readonly<Record<string, string>>;
  readonly query: Readonly<Record<string, string>>;
  /** `undefined` for a read or a removal. */
  readonly body: Readonly<Record<string, unknown>> | undefined;
}

const PARAMETER = /\{([A-Za-z_][A-Za-z0-9_]*)\}/g;

/**
 * Puts parameters into the path, and the rest into the query of a read or removal, or into a JSON body. `undefined` when one of them is no
 * path segment.
 */
export function actionRequest(
  { method, path }: Pick<RegisteredAction, 'method' | 'path'>,
  params: Readonly<Record<string, unknown>>,
): ActionRequest | undefined {
  const rest = { ...params };
  const pathParams: Record<string, string> = {};
  for (const [, name] of path.matchAll(PARAMETER) as Iterable<[string, string]>) {
    const value = params[name];
    delete rest[name];
    const text = typeof value === 'string' || typeof value === 'number' ? String(value) : '';
    // A dot segment would lead to another path than the registered one.
    if (text === '' || text === '.' || text === '..') return undefined;
    pathParams[name] = text;
  }
  if (method === 'POST' || method === 'PUT') return { pathParams, query: {}, body: rest };
  const query = Object.entries(rest).map(([name, value]) => [name, typeof value === 'string' ? value : JSON.stringify(value)]);
  return { pathParams, query: Object.fromEntries(query) as Record<string, string>, body: undefined };
}

/** The same as it goes over a wire. */
export function onTheWire(
  { path: template }: Pick<RegisteredAction, 'path'>,
  { pathParams, query, body }: ActionRequest,
): Pick<PermittedCall, 'path' | 'headers' | 'body'> {
  const path = template.replaceAll(PARAMETER, (_, name: string) => encodeURIComponent(pathParams[name] as string));
  const search = new URLSearchParams(query);
  const accept = { accept: 'application/json' };
  return {
    path: search.size === 0 ? path : `${path}?${search}`,
    headers: body ? { ...accept, 'content-type': 'application/json' } : accept,
    body: body ? JSON.stringify(body) : null,
  };
}
