import type { Manifest } from '../manifest.ts';

/** The path parameter that names the thing a record shows. */
export const recordParameter = (manifest: Manifest, { source }: { source: string }): string =>
  /\{([A-Za-z_]+)\}/.exec(manifest.routes[source]?.path ?? '')?.[1] ?? 'id';
