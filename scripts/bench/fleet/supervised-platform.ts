import { type ChildProcess, spawn } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { request } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { freePort } from '@platform/kernel/storage/free-port';

const ROOT = fileURLToPath(new URL('../../../', import.meta.url));
const LOAD = fileURLToPath(new URL('./fleet-load.ts', import.meta.url));
const WINDOW_S = 1;
const SETTLE_MS = 2_000;

interface Instance {
  readonly service_type: string;
  readonly instance_key: string;
  readonly pid: number;
  readonly status: string;
}
interface Progress {
  readonly operation_id: string;
  readonly phase: string;
}
export interface Load {
  readonly asked: number;
  readonly failed: readonly { readonly at: number; readonly host: string; readonly why: string }[];
}

/** A platform as `npm start -- --split` runs it, asked over its control socket. */
export class SupervisedPlatform implements AsyncDisposable {
  readonly dataDir = mkdtempSync(join(tmpdir(), 'platform-bench-'));
  port = 0;
  pid = 0;
  #child: ChildProcess | undefined;

  /** @returns seconds from the command to `ready` */
  async start(): Promise<number> {
    this.port ||= await freePort();
    const began = performance.now();
    const environment = {
      ...process.env,
      PLATFORM_DATA_DIR: this.dataDir,
      PLATFORM_PROXY_HTTPS_PORT: String(this.port),
      PLATFORM_CAPTAIN_UPGRADE_WINDOW_S: String(WINDOW_S),
      PLATFORM_CAPTAIN_DRAIN_S: '10',
    };
    const child = spawn(process.execPath, [join(ROOT, 'scripts', 'start.mjs'), '--split'], {
      cwd: ROOT,
      env: environment,
      stdio: ['ignore', 'pipe', 'ignore'],
    });
    this.#child = child;
    let said = '';
    await new Promise<void>((resolve, reject) => {
      child.stdout?.on('data', (chunk: Buffer) => {
        said += chunk.toString();
        const [, line] = /^ready (\{.*\})$/m.exec(said) ?? [];
        if (!line) return;
        this.pid = (JSON.parse(line) as { pid: number }).pid;
        resolve();
      });
      child.once('exit', code => reject(new Error(`the platform ended with ${code}:\n${said.slice(-2_000)}`)));
    });
    return (performance.now() - began) / 1_000;
  }

  async stop(): Promise<void> {
    const child = this.#child;
    if (!child || child.exitCode !== null) return;
    const gone = new Promise(resolve => child.once('exit', resolve));
    child.kill('SIGINT');
    await gone;
  }

  ask<T>(method: string, path: string, body?: unknown): Promise<T> {
    return new Promise((resolve, reject) => {
      const text = body === undefined ? '' : JSON.stringify(body);
      const outgoing = request(
        { socketPath: join(this.dataDir, 'run', 'captain.sock'), method, path, headers: { 'content-length': Buffer.byteLength(text) } },
        response => {
          let said = '';
          response.setEncoding('utf8').on('data', (chunk: string) => (said += chunk));
          response.on('end', () => ((response.statusCode ?? 500) < 300 ? resolve(JSON.parse(said) as T) : reject(new Error(said))));
        },
      );
      outgoing.on('error', reject);
      outgoing.end(text);
    });
  }

  async instances(service: string): Promise<readonly Instance[]> {
    return (await this.ask<{ items: Instance[] }>('GET', `/v1/captain/services?service_type=${service}`)).items.filter(
      ({ status }) => status === 'Active',
    );
  }

  async upgrade(service: string): Promise<void> {
    const [instance] = await this.instances(service);
    const { operation_id: id } = await this.ask<{ operation_id: string }>(
      'POST',
      `/v1/captain/services/${encodeURIComponent(instance?.instance_key ?? '')}/upgrade`,
      {},
    );
    for (;;) {
      const { items } = await this.ask<{ items: Progress[] }>('GET', '/v1/captain/upgrade-status');
      const phase = items.find(({ operation_id }) => operation_id === id)?.phase;
      if (phase === 'complete') return;
      if (phase === 'aborted' || phase === 'rolled_back') throw new Error(`an upgrade of ${service} was ${phase}`);
      await delay(100);
    }
  }

  /** Steady load of a client that does not try again, while `work` goes on. */
  async under(hosts: readonly string[], work: () => Promise<void>): Promise<Load> {
    const names = hosts.map(label => `${label}.ops.sys.localhost`);
    const child = spawn(process.execPath, ['--disable-warning=ExperimentalWarning', LOAD, String(this.port), ...names], {
      stdio: ['ignore', 'pipe', 'inherit'],
    });
    let said = '';
    child.stdout.setEncoding('utf8').on('data', (chunk: string) => (said += chunk));
    const gone = new Promise(resolve => child.once('close', resolve));
    await delay(SETTLE_MS);
    await work();
    await delay(SETTLE_MS);
    child.kill('SIGTERM');
    await gone;
    return JSON.parse(said) as Load;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.stop();
    rmSync(this.dataDir, { recursive: true, force: true });
  }
}
