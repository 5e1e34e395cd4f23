/** Actions of two segments that the documents also spell with the registry's name in front (G-K-08). */
const SHORT = new Set(['tenants:read', 'audit:read', 'audit:write']);

/** One spelling of a scope and the action it carries: `platform:X`, and `platform:sys:X` for the registry's short ones, become `X`. */
export function canonicalScope(scope: string): string {
  const bare = scope.startsWith('platform:') ? scope.slice('platform:'.length) : scope;
  const short = bare.startsWith('sys:') ? bare.slice('sys:'.length) : '';
  return SHORT.has(short) ? short : bare;
}

export const scopeList = (scope: string | undefined): string[] => [
  ...new Set((scope ?? '').split(' ').filter(Boolean).map(canonicalScope)),
];
