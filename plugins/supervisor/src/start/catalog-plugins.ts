import { CatalogFileEntry } from '../../contract/schema/catalog.ts';
import type { SupervisorContext } from '../context.ts';
import type { Catalog } from '../fleet/catalog.ts';

/** Reads further lines of the catalog, and the plugins they bring (SUP-011). One that is wrong is named and passed over. */
export async function loadCatalogPlugins(ctx: SupervisorContext, catalog: Catalog, progress: (text: string) => void): Promise<void> {
  const { config, log, processes: machine } = ctx;
  const entries = catalog.readFiles(config.catalogPaths.split(':').filter(Boolean), { check: ctx.catalog.checkOf(CatalogFileEntry), log });
  for (const { service_type, entry, env_allow } of entries) {
    if (entry === undefined) continue;
    await machine.load(entry, env_allow).catch(error => {
      log.error({ service_type, entry, err: error, alert: 'captain.catalog.invalid' }, 'a plugin of the catalog cannot be read');
      progress(`! ${service_type} cannot be read: ${error instanceof Error ? error.message : String(error)}`);
    });
  }
}
