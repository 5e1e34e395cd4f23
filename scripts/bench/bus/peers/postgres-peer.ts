import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { openAuthority } from '@platform/kernel/identity/certificates/trust-anchors';
import { startEmbeddedPostgres } from '@platform/kernel/storage/postgres/embedded-postgres';

/** Of the `pg` client. */
export interface PostgresLogin {
  readonly host: string;
  readonly port: number;
  readonly database: string;
  readonly user: string;
  readonly max: number;
}

/**
 * A database of its own on the platform's server with the platform's settings, reached over its socket: cheaper for the peer than our own
 * mutual TLS.
 */
export async function withPostgres<T>(work: (login: PostgresLogin) => Promise<T>): Promise<T> {
  const dataDir = mkdtempSync(join(tmpdir(), 'bench-postgres-'));
  try {
    const authority = await openAuthority(dataDir);
    const leaf = await authority.classical.issue({ commonName: 'postgres', names: ['ip:127.0.0.1'], usages: ['server'], days: 1 });
    await using server = await startEmbeddedPostgres({
      dataDir,
      tls: { ca: authority.classical.files.rootCertificate, cert: leaf.chain, key: leaf.key as string },
      progress: () => {},
    });
    const admin = server.admin();
    await admin`create database peer`;
    const [{ directory }] = (await admin`select current_setting('unix_socket_directories') as directory`) as unknown as [
      { directory: string },
    ];
    return await work({ host: directory, port: server.port, database: 'peer', user: 'postgres', max: 16 });
  } finally {
    rmSync(dataDir, { recursive: true, force: true });
  }
}
