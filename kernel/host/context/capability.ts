import type { Manifest } from '../../base/manifest.ts';

/** What only plugins may touch that declare it; whoever did not is told at the first use. */
export function capability<T extends object>(manifest: Manifest, name: string, value: T): T {
  if (manifest.capabilities.includes(name)) return value;
  return new Proxy(value, {
    get: () => {
      throw new Error(`${manifest.id} uses the capability '${name}' without declaring it`);
    },
  });
}
