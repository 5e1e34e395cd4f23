import { spawn } from 'node:child_process';
import { createPrivateKey, randomBytes, X509Certificate } from 'node:crypto';
import { appendFileSync, existsSync, mkdtempSync, readdirSync, readFileSync, renameSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { writePrivateFile } from '../../private-file.ts';
import { endProcess, isAlive, readRecord, recordOf, writeRecord } from '../../process-record.ts';
import { StorageError } from '../../storage-error.ts';
import { DATABASE_ENVIRONMENT, type DatabaseAccount, giveTo, ownName, privateDirectory } from './database-account.ts';
import type { PostgresBinaries } from './postgres-binaries.ts';
import { HBA, ident, settings } from './postgres-config.ts';
import type { Postmaster } from './postmaster.ts';

/** PEM texts of the classical hierarchy: the bundled OpenSSL knows no post-quantum keys. */
export interface PostgresTls {
  readonly ca: string;
  readonly cert: string;
  readonly key: string;
}

/** The data of an embedded PostgreSQL and what its server is run with. */
export interface PostgresCluster {
  readonly root: string;
  readonly home: string;
  readonly record: string;
  readonly binaries: PostgresBinaries;
  readonly account: DatabaseAccount;
  readonly progress: (text: string) => void;
  readonly signal: AbortSignal | undefined;
}

const STAGING = 'pg-init-';

/** What a start that was killed while it made a cluster has left: forty megabytes, and perhaps the program that still writes them. */
export async function sweepStaging({ root, record }: PostgresCluster): Promise<void> {
  const maker = readRecord(`${record}.init`);
  if (maker !== null && isAlive(maker)) await endProcess(maker, [['SIGKILL', 5_000]]);
  rmSync(`${record}.init`, { force: true });
  for (const name of readdirSync(root).filter(entry => entry.startsWith(STAGING)))
    rmSync(join(root, name), { recursive: true, force: true, maxRetries: 20, retryDelay: 100 });
}

/** A cluster is made beside its place and moved there when it is whole, so that a crash leaves none or all of it. */
export async function initialise(cluster: PostgresCluster): Promise<void> {
  const { root, home, record, account, progress, signal } = cluster;
  progress('Creating the database cluster');
  const staging = join(root, `${STAGING}${randomBytes(4).toString('hex')}`);
  privateDirectory(staging, account);
  try {
    await runInitdb(cluster, staging);
    signal?.throwIfAborted();
    appendFileSync(join(staging, 'postgresql.conf'), "\ninclude_if_exists = 'platform.conf'\n");
    renameSync(staging, home);
  } catch (error) {
    rmSync(staging, { recursive: true, force: true });
    throw error;
  } finally {
    rmSync(`${record}.init`, { force: true });
  }
}

/** Returns when nobody writes in `staging` any more, also when it is called off: initdb and the servers it runs are one process group. */
async function runInitdb({ record, binaries, account, signal }: PostgresCluster, staging: string): Promise<void> {
  const args = ['-D', staging, '-U', 'postgres', '--encoding=UTF8', '--locale=C', '--auth=reject', '--no-instructions'];
  const [program, ...rest] = [...account.prefix, binaries.initdb, ...args, '--locale-provider=builtin', '--builtin-locale=C.UTF-8'];
  signal?.throwIfAborted();
  const child = spawn(program as string, rest, {
    ...account.spawn,
    cwd: '/',
    env: DATABASE_ENVIRONMENT,
    stdio: ['ignore', 'ignore', 'pipe'],
    detached: true,
  });
  const end = () => {
    try {
      if (child.pid !== undefined) process.kill(-child.pid, 'SIGTERM');
    } catch (error) {
      // It has ended by itself, and `close` is on its way.
      if ((error as NodeJS.ErrnoException).code !== 'ESRCH') throw error;
    }
  };
  signal?.addEventListener('abort', end, { once: true });
  try {
    if (child.pid !== undefined) writeRecord(`${record}.init`, recordOf(child.pid));
    let said = '';
    child.stderr.setEncoding('utf8').on('data', (text: string) => (said = (said + text).slice(-4_000)));
    // The pipe is closed by the last process that has it, which may be a child of the child.
    const code = await new Promise((done, failed) => child.once('error', failed).once('close', done));
    if (code !== 0 && !signal?.aborted) throw new StorageError('initdb_failed', `initdb ended with ${String(code)}: ${said.trim()}`);
  } finally {
    signal?.removeEventListener('abort', end);
  }
}

export function configure(
  { home, account }: PostgresCluster,
  tls: PostgresTls,
  { port, socketDirectory }: Pick<Postmaster, 'port' | 'socketDirectory'>,
): void {
  const give = (file: string): void => giveTo(file, account);
  // Seen from inside its namespace, every user of the machine that is not ours is called nobody: the socket's folder keeps them out.
  const administrators = [...new Set([ownName() ?? 'nobody', 'root', ...(account.kind === 'namespace' ? ['nobody'] : [])])];
  const config = { port, socketDirectory, administrators };
  privateDirectory(join(home, 'tls'), account);
  writePrivateFile(join(home, 'tls', 'ca.crt'), tls.ca, give);
  writePrivateFile(join(home, 'tls', 'server.crt'), tls.cert, give);
  writePrivateFile(join(home, 'tls', 'server.key'), tls.key, give);
  writePrivateFile(join(home, 'pg_hba.conf'), HBA, give);
  writePrivateFile(join(home, 'pg_ident.conf'), ident(config), give);
  writePrivateFile(join(home, 'platform.conf'), settings(config), give);
}

/** A key that does not fit its certificate would be refused by the server silently, or keep it from starting: say so here. */
export function checkTls({ cert, key }: PostgresTls): void {
  if (!new X509Certificate(cert).checkPrivateKey(createPrivateKey(key)))
    throw new StorageError('tls_mismatch', 'the database certificate and its key do not belong together');
}

export function previousPort(home: string): number {
  const file = join(home, 'platform.conf');
  return existsSync(file) ? Number(/^port = (\d+)$/m.exec(readFileSync(file, 'utf8'))?.[1] ?? 0) : 0;
}

/** The kernel cuts socket addresses at 108 bytes. */
export function socketDirectory(root: string, account: DatabaseAccount): string {
  let path = join(root, 'run', 'pg');
  if (Buffer.byteLength(join(path, '.s.PGSQL.65535')) >= 100) path = mkdtempSync(join(tmpdir(), 'platform-pg-'));
  privateDirectory(path, account);
  return path;
}
