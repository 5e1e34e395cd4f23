import { spawn } from 'node:child_process';
import { createPrivateKey, randomBytes, X509Certificate } from 'node:crypto';
import { appendFileSync, closeSync, existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, renameSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import type postgres from 'postgres';
import { DATABASE_ENVIRONMENT, type DatabaseAccount, databaseAccount, giveTo, ownName, privateDirectory } from './database-account.ts';
import { freePort } from '../free-port.ts';
import { openLog, tailOf } from '../log-file.ts';
import { driver } from './postgres-driver.ts';
import { type PostgresBinaries, postgresBinaries } from './postgres-binaries.ts';
import { HBA, ident, settings } from './postgres-config.ts';
import { findPostmaster, type Postmaster } from './postmaster.ts';
import { writePrivateFile } from '../private-file.ts';
import { endProcess, isAlive, readRecord, recordOf, writeRecord } from '../process-record.ts';
import { ensureDatabase } from '../schema/service-schema.ts';
import { StorageError } from '../storage-error.ts';

/** PEM texts of the classical hierarchy: the bundled OpenSSL knows no post-quantum keys. */
export interface PostgresTls {
  readonly ca: string;
  readonly cert: string;
  readonly key: string;
}

export interface EmbeddedPostgresOptions {
  readonly dataDir: string;
  readonly tls: PostgresTls;
  readonly progress?: (text: string) => void;
  readonly signal?: AbortSignal;
}

const READY_MS = 60_000;

/**
 * Starts PostgreSQL on the data in `<dataDir>/pg`, or adopts the one a killed host left running there. One host per `dataDir` is the
 * caller's promise. Life: initialised once → started or adopted → ready → stopped.
 */
export async function startEmbeddedPostgres({
  dataDir,
  tls,
  progress = () => {},
  signal,
}: EmbeddedPostgresOptions): Promise<EmbeddedPostgres> {
  const root = resolve(dataDir);
  const home = join(root, 'pg');
  const binaries = postgresBinaries();
  const account = databaseAccount(root, home, [binaries.initdb, binaries.postgres, ...binaries.folders]);
  mkdirSync(join(root, 'run'), { recursive: true, mode: 0o711 });
  const cluster: Cluster = { root, home, record: join(root, 'run', 'pg.json'), binaries, account, progress, signal };
  checkTls(tls);
  const found = findPostmaster(home, cluster.record);
  if (found !== null) {
    const adopted = new EmbeddedPostgres(cluster, found);
    try {
      progress('Adopting the PostgreSQL that is running');
      await adopted.reloadTls(tls);
      writeRecord(cluster.record, found);
      return adopted;
    } catch {
      progress('Stopping a PostgreSQL that does not answer');
      await adopted.stop();
    }
  }
  await sweepStaging(cluster);
  if (!existsSync(home)) {
    await initialise(cluster);
    // A program that the killed one had started may have gone on for a moment, and written behind the first look.
    await sweepStaging(cluster);
  }
  for (let attempt = 1; ; attempt++) {
    const started = await start(cluster, tls).catch((error: unknown) => {
      // Somebody may take the port before we bind it; a killed server has its number until it is buried, and its children live a moment
      // longer.
      if (
        attempt >= 20 ||
        !(error instanceof StorageError) ||
        !/could not (bind|create any TCP)|shared memory block .* still in use|lock file .* already exists/s.test(error.message)
      )
        throw error;
      return delay(100, null, { ...(signal && { signal }) });
    });
    if (started !== null) return started;
  }
}

/** A running embedded PostgreSQL. It outlives a killed host; {@link stop} ends it. */
export class EmbeddedPostgres {
  readonly host = '127.0.0.1';
  readonly database = 'platform';
  readonly port: number;
  readonly pid: number;
  readonly #cluster: Cluster;
  readonly #postmaster: Postmaster;
  #admin: postgres.Sql | undefined;

  constructor(cluster: Cluster, postmaster: Postmaster) {
    this.#cluster = cluster;
    this.#postmaster = postmaster;
    this.port = postmaster.port;
    this.pid = postmaster.pid;
  }

  /** The administrator of database `platform`, over the private socket. One client, closed by {@link stop}. */
  admin(): postgres.Sql {
    this.#admin ??= adminClient(this.#postmaster, this.database, 2);
    return this.#admin;
  }

  /** Takes new certificates without dropping a connection. Returns when new connections are served with them. */
  async reloadTls(tls: PostgresTls): Promise<void> {
    checkTls(tls);
    await waitReady(this.#cluster);
    configure(this.#cluster, tls, this.#postmaster);
    await using reload = disposable(adminClient(this.#postmaster, 'postgres', 1));
    const [before] = await reload.sql`select pg_conf_load_time()::text as at`;
    await reload.sql`select pg_reload_conf()`;
    for (let tries = 0; tries < 500; tries++) {
      const [now] = await reload.sql`select pg_conf_load_time()::text as at`;
      if (now?.['at'] !== before?.['at']) break;
      await delay(5);
    }
    await ensureDatabase(reload.sql, this.database);
  }

  /** Ends the server in order: connections are cut, everything committed is on disk. */
  async stop(): Promise<void> {
    await this.#admin?.end({ timeout: 1 });
    await endProcess(this.#postmaster, [
      ['SIGINT', 15_000],
      ['SIGQUIT', 5_000],
      ['SIGKILL', 5_000],
    ]);
    if (this.#postmaster.socketDirectory.startsWith(join(tmpdir(), 'platform-pg-')))
      rmSync(this.#postmaster.socketDirectory, { recursive: true, force: true });
    rmSync(this.#cluster.record, { force: true });
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.stop();
  }
}

interface Cluster {
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
async function sweepStaging({ root, record }: Cluster): Promise<void> {
  const maker = readRecord(`${record}.init`);
  if (maker !== null && isAlive(maker)) await endProcess(maker, [['SIGKILL', 5_000]]);
  rmSync(`${record}.init`, { force: true });
  for (const name of readdirSync(root).filter(entry => entry.startsWith(STAGING)))
    rmSync(join(root, name), { recursive: true, force: true, maxRetries: 20, retryDelay: 100 });
}

/** A cluster is made beside its place and moved there when it is whole, so that a crash leaves none or all of it. */
async function initialise({ root, home, record, binaries, account, progress, signal }: Cluster): Promise<void> {
  progress('Creating the database cluster');
  const staging = join(root, `${STAGING}${randomBytes(4).toString('hex')}`);
  privateDirectory(staging, account);
  try {
    const args = [
      '-D',
      staging,
      '-U',
      'postgres',
      '--encoding=UTF8',
      '--locale-provider=builtin',
      '--builtin-locale=C.UTF-8',
      '--locale=C',
      '--auth=reject',
      '--no-instructions',
    ];
    const [program, ...rest] = [...account.prefix, binaries.initdb, ...args];
    const child = spawn(program as string, rest, {
      ...account.spawn,
      cwd: '/',
      env: DATABASE_ENVIRONMENT,
      stdio: ['ignore', 'ignore', 'pipe'],
      ...(signal && { signal }),
    });
    if (child.pid !== undefined) writeRecord(`${record}.init`, recordOf(child.pid));
    let said = '';
    child.stderr.setEncoding('utf8').on('data', (text: string) => (said = (said + text).slice(-4_000)));
    const code = await new Promise((done, failed) => child.once('error', failed).once('close', done));
    if (code !== 0) throw new StorageError('initdb_failed', `initdb ended with ${String(code)}: ${said.trim()}`);
    appendFileSync(join(staging, 'postgresql.conf'), "\ninclude_if_exists = 'platform.conf'\n");
    renameSync(staging, home);
    rmSync(`${record}.init`, { force: true });
  } catch (error) {
    rmSync(staging, { recursive: true, force: true });
    throw error;
  }
}

async function start(cluster: Cluster, tls: PostgresTls): Promise<EmbeddedPostgres> {
  const { root, home, record, binaries, account, progress, signal } = cluster;
  progress('Starting PostgreSQL');
  signal?.throwIfAborted();
  const port = await freePort(previousPort(home));
  configure(cluster, tls, { port, socketDirectory: socketDirectory(root, account) });
  const log = openLog(join(root, 'logs'), 'postgres.log');
  const [program, ...rest] = [...account.prefix, binaries.postgres, '-D', home];
  const child = spawn(program as string, rest, {
    ...account.spawn,
    cwd: '/',
    env: DATABASE_ENVIRONMENT,
    detached: true,
    stdio: ['ignore', log.fd, log.fd],
  });
  closeSync(log.fd);
  let failure: Error | undefined;
  child.once('error', error => (failure = error));
  child.unref();
  if (child.pid !== undefined) writeRecord(record, recordOf(child.pid));
  try {
    const postmaster = await waitReady(cluster, () => {
      if (failure !== undefined) throw failure;
      if (child.exitCode !== null) throw new StorageError('postgres_failed', `PostgreSQL ended with ${child.exitCode}: ${tailOf(log)}`);
    });
    await using first = disposable(adminClient(postmaster, 'postgres', 1));
    await ensureDatabase(first.sql, 'platform');
    return new EmbeddedPostgres(cluster, postmaster);
  } catch (error) {
    if (child.pid !== undefined)
      await endProcess(recordOf(child.pid), [
        ['SIGQUIT', 5_000],
        ['SIGKILL', 5_000],
      ]);
    throw error;
  }
}

/** Waits for the lock file to say `ready`, which it does after crash recovery too. */
async function waitReady({ home, record, signal }: Cluster, check = (): void => {}): Promise<Postmaster> {
  const deadline = performance.now() + READY_MS;
  while (performance.now() < deadline) {
    signal?.throwIfAborted();
    check();
    const found = findPostmaster(home, record);
    if (found?.ready) return found;
    await delay(10);
  }
  throw new StorageError('postgres_not_ready', `PostgreSQL in ${home} is not ready after ${READY_MS / 1_000} s`);
}

function configure(
  { home, account }: Cluster,
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
function checkTls({ cert, key }: PostgresTls): void {
  if (!new X509Certificate(cert).checkPrivateKey(createPrivateKey(key)))
    throw new StorageError('tls_mismatch', 'the database certificate and its key do not belong together');
}

function previousPort(home: string): number {
  const file = join(home, 'platform.conf');
  return existsSync(file) ? Number(/^port = (\d+)$/m.exec(readFileSync(file, 'utf8'))?.[1] ?? 0) : 0;
}

/** The kernel cuts socket addresses at 108 bytes. */
function socketDirectory(root: string, account: DatabaseAccount): string {
  let path = join(root, 'run', 'pg');
  if (Buffer.byteLength(join(path, '.s.PGSQL.65535')) >= 100) path = mkdtempSync(join(tmpdir(), 'platform-pg-'));
  privateDirectory(path, account);
  return path;
}

function adminClient({ socketDirectory, port }: Postmaster, database: string, max: number): postgres.Sql {
  return driver({
    path: join(socketDirectory, `.s.PGSQL.${port}`),
    host: 'localhost',
    user: 'postgres',
    database,
    max,
    idle_timeout: 20,
    connect_timeout: 5,
    onnotice: () => {},
  });
}

function disposable(sql: postgres.Sql): { readonly sql: postgres.Sql } & AsyncDisposable {
  return { sql, [Symbol.asyncDispose]: () => sql.end({ timeout: 1 }) };
}
