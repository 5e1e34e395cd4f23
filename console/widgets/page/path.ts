/** The value at a dotted path; `undefined` as soon as a step is missing. */
export function valueAt(data: unknown, path: string): unknown {
  if (path === '' || path === '.') return data;
  let value = data;
  for (const step of path.split('.')) {
    if (value === null || typeof value !== 'object' || !Object.hasOwn(value, step)) return undefined;
    value = (value as Record<string, unknown>)[step];
  }
  return value;
}
