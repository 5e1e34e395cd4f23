import { PostgresPool } from '@platform/kernel/storage/postgres/postgres-pool';
import { roleOf, schemaOf } from '@platform/kernel/storage/schema/service-schema';
import type { TestStores } from './stores.ts';

/** Connections to the tables of a service, under its own role; they see the rows of every environment. The caller's to close. */
export async function servicePool({ stores, authority: { classical } }: TestStores, service: string): Promise<PostgresPool> {
  const leaf = await classical.issue({ commonName: `svc.${service}`, names: [], usages: ['client'], days: 1 });
  const { host, port, database } = stores.database;
  return new PostgresPool({
    host,
    port,
    database,
    user: roleOf(service),
    schema: schemaOf(service),
    ssl: {
      ca: classical.files.rootCertificate,
      cert: leaf.chain,
      key: leaf.key as string,
      servername: 'postgres.platform.internal',
    },
    everyEnvironment: true,
  });
}
