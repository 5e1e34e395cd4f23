import { type ChildProcess, fork } from 'node:child_process';
import { setTimeout as delay } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import type { Manifest } from '@platform/kernel/base/manifest';
import { processFlags } from '@platform/kernel/host/boot/process-flags';
import { Pool } from 'undici';
import type { ProcessOrder } from './process-order.ts';

const CHILD = fileURLToPath(new URL('./service-process.ts', import.meta.url));
const CONNECTIONS = 16;
const REVIVALS = 100;
const REVIVAL_MS = 100;
/** A directory that gets a CPU profile of every process that ends by itself. */
const PROFILE = process.env['BENCH_PROFILE'];

export interface Usage {
  readonly cpu: NodeJS.CpuUsage;
  /** Of it the pool threads, where the system says. */
  readonly workersUs: number | undefined;
  readonly rss: number;
}
export interface Answer {
  readonly status: number;
  readonly json: Record<string, unknown>;
}

/** One service in its process: asked over mutual TLS, killed and started again. */
export class ServiceChild {
  readonly #order: ProcessOrder;
  readonly #ca: string;
  readonly #hostname: string;
  readonly #revived: boolean;
  #port = 0;
  #ending = false;
  #child: ChildProcess | undefined;
  #pool: Pool | undefined;

  /**
   * `ca`: the root of the platform's authority. `revived`: a process that ends by itself is started again, as the fleet does, and says
   * nothing here.
   */
  constructor(order: ProcessOrder, ca: string, { revived = false } = {}) {
    this.#revived = revived;
    this.#order = order;
    this.#ca = ca;
    this.#hostname = `${order.service}.ops.sys.localhost`;
  }

  /** Where the service listens while it is up. */
  get port(): number {
    return this.#port;
  }

  get hostname(): string {
    return this.#hostname;
  }

  get up(): boolean {
    return this.#pool !== undefined;
  }

  /** Stops the process where it stands, or lets it go on. */
  pause(paused: boolean): void {
    this.#child?.kill(paused ? 'SIGSTOP' : 'SIGCONT');
  }

  async start(): Promise<void> {
    const { service, bootstrap } = this.#order;
    const { placement } = bootstrap.manifests.find(({ id }) => id === service) as Manifest;
    const child = fork(CHILD, [], {
      execArgv: [...processFlags(placement), ...(PROFILE ? ['--cpu-prof', `--cpu-prof-dir=${PROFILE}`] : [])],
      stdio: ['ignore', 'ignore', this.#revived ? 'ignore' : 'inherit', 'ipc'],
    });
    this.#child = child;
    this.#ending = false;
    child.send(this.#order);
    this.#port = await new Promise<number>((resolve, reject) => {
      child.once('message', (message: { port: number }) => resolve(message.port));
      child.once('exit', code => reject(new Error(`the ${this.#order.service} process ended with ${code}`)));
    });
    child.once('exit', () => {
      if (this.#revived && !this.#ending) void this.#revive();
    });
    this.#pool = new Pool(`https://127.0.0.1:${this.#port}`, {
      connections: CONNECTIONS,
      connect: { ca: this.#ca, servername: this.#hostname, minVersion: 'TLSv1.3' },
    });
  }

  /** Until it is up: what it died of, a database that is away for one, may last. */
  async #revive(): Promise<void> {
    for (let tries = 0; tries < REVIVALS && !this.#ending; tries++) {
      try {
        return await this.start();
      } catch {
        await delay(REVIVAL_MS);
      }
    }
  }

  /** Throws when the connection breaks: nobody knows then whether it was done. */
  async call(method: 'GET' | 'POST', path: string, token: string, body?: object): Promise<Answer> {
    const answer = await this.#request(method, path, token, body);
    return { status: answer.statusCode, json: (await answer.body.json()) as Record<string, unknown> };
  }

  /**
   * Whether the answer is the one that is known; nothing of it is kept, so that a large one costs its reader nothing that would be measured
   * too.
   */
  async repeats(path: string, token: string, known: Uint8Array): Promise<boolean> {
    const answer = await this.#request('GET', path, token);
    let [at, same] = [0, answer.statusCode === 200];
    for await (const chunk of answer.body as AsyncIterable<Buffer>) {
      same &&= chunk.equals(known.subarray(at, at + chunk.length));
      at += chunk.length;
    }
    return same && at === known.length;
  }

  #request(method: 'GET' | 'POST', path: string, token: string, body?: object) {
    if (!this.#pool) throw new Error('not started');
    const headers = { host: this.#hostname, authorization: `Bearer ${token}`, ...(body ? { 'content-type': 'application/json' } : {}) };
    return this.#pool.request({ method, path, headers, ...(body ? { body: JSON.stringify(body) } : {}) });
  }

  async usage(): Promise<Usage> {
    const { promise, resolve } = Promise.withResolvers<Usage>();
    this.#child?.once('message', message => resolve(message as Usage));
    this.#child?.send('usage');
    return promise;
  }

  /** Ends in order. */
  async stop(): Promise<void> {
    const [child, pool] = [this.#child, this.#pool];
    if (!child || child.exitCode !== null || child.signalCode !== null) return;
    this.#ending = true;
    const ended = new Promise<void>(resolve => child.once('exit', () => resolve()));
    if (child.connected) child.disconnect();
    await ended;
    await pool?.destroy();
  }

  /** Dies as a machine does. */
  async kill(): Promise<void> {
    const [child, pool] = [this.#child, this.#pool];
    if (!child || child.exitCode !== null || child.signalCode !== null) return;
    this.#ending = true;
    const ended = new Promise<void>(resolve => child.once('exit', () => resolve()));
    this.#pool = undefined;
    child.kill('SIGKILL');
    await ended;
    await pool?.destroy();
  }
}
