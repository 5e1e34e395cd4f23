/** Registry actions of two segments, which the documents also spell with the service in front (G-K-08). */
const SHORT = new Set(['tenants:read', 'audit:read', 'audit:write']);

/** One spelling for a scope and the action it carries: `platform:X`, and `platform:sys:X` for the registry's short ones, become `X`. */
export function canonicalScope(scope: string): string {
  const bare = scope.startsWith('platform:') ? scope.slice('platform:'.length) : scope;
  const short = bare.startsWith('sys:') ? bare.slice('sys:'.length) : '';
  return SHORT.has(short) ? short : bare;
}

/** A vertical's actions carry its name as scopes, so that two verticals never share one (day-one, Plugins). */
export const actionKey = (vertical: string, action: string): string =>
  vertical === 'platform' ? canonicalScope(action) : `${vertical}:${action}`;

export const parseScopes = (scope: string | undefined): ReadonlySet<string> =>
  new Set((scope ?? '').split(' ').filter(Boolean).map(canonicalScope));
