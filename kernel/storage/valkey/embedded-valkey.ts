import { type ChildProcess, execFileSync, spawn } from 'node:child_process';
import { accessSync, closeSync, constants, existsSync, mkdirSync, rmSync } from 'node:fs';
import { connect } from 'node:net';
import { delimiter, join, resolve } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { backoff } from '../../base/backoff.ts';
import { DATABASE_ENVIRONMENT, databaseAccount, giveTo, privateDirectory } from '../postgres/cluster/database-account.ts';
import { freePort } from '../free-port.ts';
import { type LogFile, openLog, tailOf } from '../log-file.ts';
import { readOrCreateSecret, writePrivateFile } from '../private-file.ts';
import { endProcess, isAlive, type ProcessRecord, readRecord, recordOf, writeRecord } from '../process-record.ts';
import { StorageError } from '../storage-error.ts';

export interface EmbeddedValkeyOptions {
  readonly dataDir: string;
  readonly progress?: (text: string) => void;
  /** `path`: only a server found on PATH; `wasm`: only the packaged one. Without it the first that is there. */
  readonly prefer?: 'wasm' | 'path';
}

interface ValkeyRecord extends ProcessRecord {
  readonly port: number;
  readonly kind: 'wasm' | 'path';
}

const READY_MS = 60_000;
const CHILD = fileURLToPath(new URL('./child.ts', import.meta.url));

/** Address of the embedded store that runs on a data directory; a secret, not for logs. */
export function runningValkeyUrl(dataDir: string): string | undefined {
  const record = readRecord<ValkeyRecord>(join(resolve(dataDir), 'run', 'kv.json'));
  if (!record || !isAlive(record)) return undefined;
  return `redis://:${readOrCreateSecret(join(resolve(dataDir), 'keys', 'kv.password'))}@127.0.0.1:${record.port}`;
}

/** Starts the key-value store on `<dataDir>/kv`, or adopts the one a killed host left running there. */
export async function startEmbeddedValkey({ dataDir, progress = () => {}, prefer }: EmbeddedValkeyOptions): Promise<EmbeddedValkey> {
  const root = resolve(dataDir);
  // Neither kind reads the other's files: data that were begun with the packaged server stay with it.
  const begun = prefer === undefined && existsSync(join(root, 'kv', 'wasm'));
  const server = prefer === 'wasm' || begun ? null : (keyValueServer()?.file ?? null);
  if (server === null && prefer === 'path')
    throw new StorageError('no_valkey', 'neither valkey-server nor redis-server 7.0 or newer is on PATH');
  mkdirSync(join(root, 'run'), { recursive: true, mode: 0o711 });
  const valkey = new EmbeddedValkey(root, server, readOrCreateSecret(join(root, 'keys', 'kv.password')));
  await valkey.start(progress);
  return valkey;
}

/**
 * A running embedded store, restarted on the same port when it dies. It outlives a killed host; {@link stop} ends it.
 * Life: new → started or adopted → (died → restarted)* → stopped.
 */
export class EmbeddedValkey {
  readonly #root: string;
  readonly #server: string | null;
  readonly #kind: 'wasm' | 'path';
  readonly #password: string;
  readonly #record: string;
  readonly #stopping = new AbortController();
  #current: ValkeyRecord | undefined;
  #watching: Promise<void> = Promise.resolve();
  #restarts = 0;

  constructor(root: string, server: string | null, password: string) {
    this.#root = root;
    this.#server = server;
    this.#kind = server === null ? 'wasm' : 'path';
    this.#password = password;
    this.#record = join(root, 'run', 'kv.json');
  }

  /** `redis://:<password>@127.0.0.1:<port>`: a secret, not for logs. */
  get url(): string {
    return `redis://:${this.#password}@127.0.0.1:${this.#current?.port}`;
  }

  get pid(): number {
    return this.#current?.pid ?? 0;
  }

  get restarts(): number {
    return this.#restarts;
  }

  /** Called once, by {@link startEmbeddedValkey}. */
  async start(progress: (text: string) => void): Promise<void> {
    const found = readRecord<ValkeyRecord>(this.#record);
    if (found !== null && isAlive(found)) {
      if (found.kind === this.#kind && (await answers(found.port, this.#password, 2_000))) {
        progress('Adopting the key-value store that is running');
        this.#current = found;
      } else {
        progress('Stopping a key-value store that does not fit');
        await end(found);
      }
    }
    if (this.#current === undefined) {
      progress('Starting the key-value store');
      this.#current = await this.#spawn(await freePort(found?.port));
    }
    this.#watching = this.#watch(this.#current);
  }

  /** Ends the server, which saves first. */
  async stop(): Promise<void> {
    this.#stopping.abort();
    if (this.#current !== undefined) await end(this.#current);
    await this.#watching;
    if (this.#current !== undefined) await end(this.#current); // a restart may have been under way
    rmSync(this.#record, { force: true });
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.stop();
  }

  /**
   * Puts a new process in the place of one that died, for as long as nobody stops us. An adopted one is no child, so all are asked after.
   */
  async #watch(first: ValkeyRecord): Promise<void> {
    const { signal } = this.#stopping;
    let current = first;
    let failures = 0;
    let bornAt = performance.now();
    while (!signal.aborted) {
      if (isAlive(current)) {
        await delay(250, undefined, { signal, ref: false }).catch(() => {});
        continue;
      }
      failures = performance.now() - bornAt > 60_000 ? 0 : failures + 1;
      await delay(backoff(failures, { baseMs: 25, capMs: 5_000 }), undefined, { signal, ref: false }).catch(() => {});
      if (signal.aborted) return;
      this.#restarts += 1;
      bornAt = performance.now();
      // The address was given out: the new process must take the old one's port.
      const next = await this.#spawn(current.port).catch(() => null);
      if (next !== null) this.#current = current = next;
    }
  }

  async #spawn(port: number): Promise<ValkeyRecord> {
    const home = join(this.#root, 'kv', this.#kind);
    mkdirSync(join(this.#root, 'kv'), { recursive: true, mode: 0o711 });
    const account = databaseAccount(this.#root, home, this.#server === null ? [process.execPath, CHILD] : [this.#server]);
    privateDirectory(home, account);
    const config = join(home, 'server.conf');
    if (this.#server !== null) writePrivateFile(config, serverConfig(port, home, this.#password), file => giveTo(file, account));
    const command =
      this.#server === null
        ? [process.execPath, '--disable-warning=ExperimentalWarning', CHILD, home, String(port)]
        : [this.#server, config];
    const [program, ...rest] = [...account.prefix, ...command];
    const log = openLog(join(this.#root, 'logs'), 'kv.log');
    const child = spawn(program as string, rest, {
      ...account.spawn,
      cwd: '/',
      env: DATABASE_ENVIRONMENT,
      detached: true,
      stdio: ['pipe', log.fd, log.fd],
    });
    closeSync(log.fd);
    child.unref();
    const record: ValkeyRecord = { ...recordOf(child.pid ?? 0), port, kind: this.#kind };
    try {
      child.stdin?.on('error', () => {}).end(this.#server === null ? this.#password : '');
      if (child.pid !== undefined) writeRecord(this.#record, record);
      await waitReady(child, record, this.#password, log);
      return record;
    } catch (error) {
      // Nobody would know of it.
      await end(record);
      throw error;
    }
  }
}

async function waitReady(child: ChildProcess, record: ValkeyRecord, password: string, log: LogFile): Promise<void> {
  let failure: Error | undefined;
  child.once('error', error => (failure = error));
  const deadline = performance.now() + READY_MS;
  while (!(await answers(record.port, password, 1_000))) {
    if (failure !== undefined) throw failure;
    if (child.exitCode !== null)
      throw new StorageError('valkey_failed', `the key-value store ended with ${child.exitCode}: ${tailOf(log)}`);
    if (performance.now() > deadline)
      throw new StorageError('valkey_not_ready', `the key-value store is not ready after ${READY_MS / 1_000} s`);
    await delay(10);
  }
}

async function end(record: ProcessRecord): Promise<void> {
  await endProcess(record, [
    ['SIGTERM', 15_000],
    ['SIGKILL', 5_000],
  ]);
}

/** Whether the server on `port` takes our password and is ready for commands. */
function answers(port: number, password: string, timeoutMs: number): Promise<boolean> {
  return new Promise(resolve => {
    let said = '';
    const socket = connect({ port, host: '127.0.0.1', timeout: timeoutMs });
    const finish = (ok: boolean): void => {
      socket.destroy();
      resolve(ok);
    };
    socket
      .setEncoding('utf8')
      .on('error', () => finish(false))
      .on('timeout', () => finish(false))
      .on('close', () => finish(false));
    socket.on('data', (text: string) => {
      said += text;
      if (said.startsWith('-') || said.length > 200) finish(false);
      else if (said.split('\r\n').length >= 3) finish(said === '+OK\r\n+PONG\r\n');
    });
    socket.write(`*2\r\n$4\r\nAUTH\r\n$${password.length}\r\n${password}\r\n*1\r\n$4\r\nPING\r\n`);
  });
}

/**
 * Values are quoted as the server reads them; the password has no character that needs it. From its default of 64 MB on, the log would be
 * rewritten every few seconds of a load.
 */
function serverConfig(port: number, directory: string, password: string): string {
  return `port ${port}
bind 127.0.0.1
protected-mode yes
requirepass ${password}
dir ${JSON.stringify(directory)}
appendonly yes
appendfsync everysec
save ""
auto-aof-rewrite-min-size 256mb
daemonize no
maxmemory-policy noeviction
`;
}

/** The server on PATH that is taken in place of the packaged one: `valkey-server` or `redis-server`, 7.0 or newer. */
export function keyValueServer(): { readonly file: string; readonly version: string } | undefined {
  for (const name of ['valkey-server', 'redis-server']) {
    for (const directory of (process.env['PATH'] ?? '').split(delimiter)) {
      const file = join(directory, name);
      try {
        accessSync(file, constants.X_OK);
        const version = / v=([\d.]+)/.exec(execFileSync(file, ['--version'], { encoding: 'utf8', timeout: 5_000 }))?.[1] ?? '';
        if (Number.parseInt(version, 10) >= 7) return { file, version };
      } catch {
        // not there, or not for this machine: the next one
      }
    }
  }
  return undefined;
}
