import { DisposalStack } from '../../base/disposal-stack.ts';
import { anchorsOf, openAuthority } from '../../identity/certificates/trust-anchors.ts';
import { Workload } from '../../identity/workload.ts';
import type { Directory } from '../../routing/directory.ts';
import { PostgresPool } from '../../storage/postgres/postgres-pool.ts';
import type { HostOptions } from '../host-options.ts';
import { lockDataDir } from '../machine/data-dir-lock.ts';
import { importPlugin } from '../plugin/loader.ts';
import { mintFor } from '../machine/enrollment/mint.ts';
import { readAll } from '../plugin/plugin-intake.ts';
import { poolOptions } from './database/pool-options.ts';
import { migrateService } from '../service/service-migrations.ts';
import { openStores } from './stores.ts';

/** Brings the schema of every service up to date, and starts none: what an operator runs before a new release. */
export async function migrateAll(options: HostOptions): Promise<readonly string[]> {
  await using owned = new DisposalStack();
  owned.own(lockDataDir(options.dataDir));
  const authority = await openAuthority(options.dataDir, options.validity);
  const { platform, others } = await readAll({ ...options, pluginDirs: [] }, []);
  const stores = await openStores(owned, { ...options, authority, guarded: false });
  const anchors = anchorsOf(authority);
  const done: string[] = [];
  for (const found of [...platform, ...others]) {
    const { id } = found.manifest;
    await stores.ensureService(id);
    const base = {
      ...options,
      build: '',
      anchors,
      database: stores.database,
      keyValueUrl: stores.keyValueUrl,
      manifests: [],
      enrollment: {},
    };
    // It signs its own certificate: nobody is asked where one is.
    const mint = mintFor({ bootstrap: base, authority, directory: undefined as unknown as Directory });
    const workload = await Workload.open({
      name: id,
      directory: `${options.dataDir}/keys`,
      anchors,
      pqMode: options.pqMode,
      hostnames: [],
      kinds: ['database'],
      mint,
    });
    const pool = new PostgresPool(poolOptions(base, id, workload));
    try {
      await migrateService(await importPlugin(found), id, pool);
      done.push(id);
    } finally {
      await pool.close();
    }
  }
  return done;
}
