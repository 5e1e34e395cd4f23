import { ConfigError } from '../configuration.ts';

/** Beside its pool a service listens for what wakes it, and its relay and the work of the fleet have a session each. */
const BESIDE_POOL = 3;

/**
 * Refuses a start whose services could take more connections than the database has: otherwise it is some service, some day, that gets none.
 * Throws a ConfigError that says what fits.
 */
export function requireConnections({ services, pool, available }: { services: number; pool: number; available: number }): void {
  if (services * (pool + BESIDE_POOL) <= available) return;
  const most = Math.floor(available / services) - BESIDE_POOL;
  const fits = most >= 2 ? `Set PLATFORM_DB_POOL to ${most} or less, or raise` : 'Raise';
  throw new ConfigError(
    `${services} services with pools of ${pool} may take ${services * (pool + BESIDE_POOL)} connections, and the database gives ${available}. ` +
      `${fits} its max_connections.`,
  );
}
