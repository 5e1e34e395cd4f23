import type postgres from 'postgres';
import type { DisposalStack } from '../../base/disposal-stack.ts';
import type { Authority } from '../../identity/certificates/trust-anchors.ts';
import { startEmbeddedPostgres } from '../../storage/postgres/embedded-postgres.ts';
import { driver } from '../../storage/postgres/postgres-driver.ts';
import { PostgresGuard } from '../../storage/postgres/postgres-guard.ts';
import { startEmbeddedValkey } from '../../storage/valkey/embedded-valkey.ts';
import { RestrictedLogins } from '../../storage/valkey/restricted-logins.ts';
import { ensureServiceSchema } from '../../storage/schema/service-schema.ts';
import type { DatabaseAddress } from './bootstrap.ts';

/** The databases of this host: the ones it was pointed at, or embedded ones it owns. */
export interface Stores {
  readonly database: DatabaseAddress;
  readonly keyValueUrl: string;
  /** Fails while the database does not answer. */
  answer(): Promise<void>;
  /** How many connections the database gives to services; unknown on a machine that joined a fleet. */
  connections(): Promise<number | undefined>;
  /** Gives a service its role and schema; an administrator's work, done by the host alone. */
  ensureService(service: string): Promise<void>;
  /** A key-value login for code that is not ours: it reads versions and revocations, and writes its own instance row (H-03). */
  restrictedKeyValueUrl(service: string): Promise<string>;
}

const SERVER_NAME = 'postgres.platform.internal';
const SERVER_DAYS = 365;

/**
 * Opens both stores; a database that dies is started again unless `guarded` is false. `authority` signs the database server's leaf, of the
 * classical hierarchy (day-one 3).
 */
export async function openStores(
  owned: DisposalStack,
  options: {
    dataDir: string;
    authority: Authority;
    databaseUrl: string | undefined;
    keyValueUrl: string | undefined;
    preferKeyValue?: 'wasm' | 'path';
    guarded?: boolean;
    progress: (text: string) => void;
  },
): Promise<Stores> {
  const { dataDir, progress } = options;
  // Both to their end, even when one fails: what came up must be owned before anybody takes it down.
  const [database, keyValue] = await Promise.allSettled([
    openPostgres(owned, options),
    openKeyValue(owned, { ...options, dataDir, progress }),
  ]);
  if (database.status === 'rejected') throw database.reason;
  if (keyValue.status === 'rejected') throw keyValue.reason;
  const [postgresParts, keyValueUrl] = [database.value, keyValue.value];
  const logins = owned.own(new RestrictedLogins(keyValueUrl));
  return {
    database: postgresParts.address,
    keyValueUrl,
    answer: async () => void (await postgresParts.admin()`select 1`),
    connections: () => connectionsOf(postgresParts.admin()),
    ensureService: service => ensureServiceSchema(postgresParts.admin(), service),
    restrictedKeyValueUrl: service => logins.add(service),
  };
}

/** What is left for others than administrators. */
async function connectionsOf(sql: postgres.Sql): Promise<number> {
  const [row] = await sql<{ free: number }[]>`
    select current_setting('max_connections')::int - current_setting('superuser_reserved_connections')::int as free`;
  return row?.free ?? 0;
}

async function openPostgres(
  owned: DisposalStack,
  {
    dataDir,
    authority,
    databaseUrl,
    guarded = true,
    progress,
  }: { dataDir: string; authority: Authority; databaseUrl: string | undefined; guarded?: boolean; progress: (text: string) => void },
): Promise<{ address: DatabaseAddress; admin: () => postgres.Sql }> {
  if (databaseUrl) {
    const url = new URL(databaseUrl);
    const tls = url.searchParams.get('sslmode') !== 'disable';
    const admin = driver(databaseUrl, { max: 2, onnotice: () => undefined, ...(tls ? { ssl: 'verify-full' as const } : {}) });
    owned.defer(() => admin.end({ timeout: 2 }));
    return {
      admin: () => admin,
      address: {
        host: url.hostname,
        port: Number(url.port || 5432),
        database: url.pathname.slice(1) || 'platform',
        login: { user: decodeURIComponent(url.username), password: decodeURIComponent(url.password), tls },
      },
    };
  }
  const leaf = await authority.classical.issue({
    commonName: SERVER_NAME,
    names: [`dns:${SERVER_NAME}`, 'ip:127.0.0.1'],
    usages: ['server'],
    days: SERVER_DAYS,
  });
  authority.note(leaf);
  const start = () =>
    startEmbeddedPostgres({
      dataDir,
      tls: { ca: authority.classical.files.rootCertificate, cert: leaf.chain, key: leaf.key as string },
      progress,
    });
  const server = await start();
  const { host, port, database } = server;
  const address = { host, port, database };
  if (!guarded) {
    owned.defer(() => server.stop());
    return { admin: () => server.admin(), address };
  }
  const guard = owned.own(new PostgresGuard(server, start, progress));
  return { admin: () => guard.admin(), address };
}

async function openKeyValue(
  owned: DisposalStack,
  {
    keyValueUrl,
    dataDir,
    preferKeyValue,
    progress,
  }: { keyValueUrl: string | undefined; dataDir: string; preferKeyValue?: 'wasm' | 'path'; progress: (text: string) => void },
): Promise<string> {
  if (keyValueUrl) return keyValueUrl;
  const server = await startEmbeddedValkey({ dataDir, progress, ...(preferKeyValue ? { prefer: preferKeyValue } : {}) });
  owned.defer(() => server.stop());
  return server.url;
}
