import type { Workload } from '../../../identity/workload.ts';
import type { PostgresPoolOptions } from '../../../storage/postgres/postgres-pool.ts';
import { roleOf, schemaOf } from '../../../storage/schema/service-schema.ts';
import { type Bootstrap, DEFAULT_POOL } from '../bootstrap.ts';

/** How a service logs in: with its own certificate, renewed ones included; on a managed server by one login and `SET ROLE` (day-one 3). */
export function poolOptions({ database, anchors }: Bootstrap, service: string, workload: Workload): PostgresPoolOptions {
  const base = {
    host: database.host,
    port: database.port,
    database: database.database,
    schema: schemaOf(service),
    max: database.pool ?? DEFAULT_POOL,
  };
  if (database.login)
    return {
      ...base,
      user: database.login.user,
      password: database.login.password,
      role: roleOf(service),
      ...(database.login.tls ? { ssl: 'verify-full' as const } : {}),
    };
  return {
    ...base,
    user: roleOf(service),
    ssl: () => {
      const { chain, key } = workload.credential('database');
      return { ca: anchors.classical.root, cert: chain, key, servername: 'postgres.platform.internal' };
    },
  };
}
