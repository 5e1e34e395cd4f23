import { spawn } from 'node:child_process';
import { closeSync, existsSync, mkdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import type postgres from 'postgres';
import { DATABASE_ENVIRONMENT, databaseAccount } from './cluster/database-account.ts';
import { postgresBinaries } from './cluster/postgres-binaries.ts';
import {
  checkTls,
  configure,
  initialise,
  type PostgresCluster,
  type PostgresTls,
  previousPort,
  socketDirectory,
  sweepStaging,
} from './cluster/postgres-cluster.ts';
import { findPostmaster, type Postmaster } from './cluster/postmaster.ts';
import { freePort } from '../free-port.ts';
import { openLog, tailOf } from '../log-file.ts';
import { driver } from './postgres-driver.ts';
import { endProcess, recordOf, writeRecord } from '../process-record.ts';
import { ensureDatabase } from '../schema/service-schema.ts';
import { StorageError } from '../storage-error.ts';

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
  const cluster: PostgresCluster = { root, home, record: join(root, 'run', 'pg.json'), binaries, account, progress, signal };
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
  readonly #cluster: PostgresCluster;
  readonly #postmaster: Postmaster;
  #admin: postgres.Sql | undefined;

  constructor(cluster: PostgresCluster, postmaster: Postmaster) {
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

async function start(cluster: PostgresCluster, tls: PostgresTls): Promise<EmbeddedPostgres> {
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
async function waitReady({ home, record, signal }: PostgresCluster, check = (): void => {}): Promise<Postmaster> {
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
