import { type ChildProcess, spawn } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { request } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { processUsage } from '@platform/kernel/host/machine/process-usage';
import { freePort } from '@platform/kernel/storage/free-port';
import { recordOf } from '@platform/kernel/storage/process-record';
import type { Row } from './row.ts';

const ROOT = fileURLToPath(new URL('../../', import.meta.url));
const UPGRADES = Number(process.env['PLATFORM_BENCH_UPGRADES'] ?? 50);
const WINDOW_S = 1;
const REST_S = 30;
const SETTLE_MS = 2_000;
const UPGRADED = ['sys', 'bff', 'proxy'];

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
interface Load {
  readonly asked: number;
  readonly failed: readonly { readonly at: number; readonly host: string; readonly why: string }[];
}

/** A platform as `npm start -- --split` runs it, asked over its control socket. */
class SupervisedPlatform implements AsyncDisposable {
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
    const child = spawn(
      process.execPath,
      ['--disable-warning=ExperimentalWarning', join(ROOT, 'scripts', 'bench', 'fleet-load.ts'), String(this.port), ...names],
      {
        stdio: ['ignore', 'pipe', 'inherit'],
      },
    );
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

/** The fleet supervisor: what it needs at rest, how fast it starts everything, and what clients see of upgrades and deaths. */
export async function* fleetRows(): AsyncIterable<Row> {
  await using platform = new SupervisedPlatform();
  await platform.start();
  await platform.stop();
  yield { name: 'supervised start of all services, later start', value: await platform.start(), unit: 's', limit: 8 };
  yield* atRest(platform);
  for (const service of UPGRADED) yield* upgrades(platform, service);
  yield* deaths(platform);
}

async function* atRest(platform: SupervisedPlatform): AsyncIterable<Row> {
  await delay(5_000);
  const id = recordOf(platform.pid);
  const before = processUsage(id);
  const began = performance.now();
  await delay(REST_S * 1_000);
  const after = processUsage(id);
  if (!before || !after) throw new Error('the supervisor is gone');
  yield {
    name: 'supervisor at rest: CPU',
    value: ((after.cpu_ms - before.cpu_ms) / (performance.now() - began)) * 100,
    unit: '% of a core',
    limit: 1,
  };
  yield { name: 'supervisor at rest: resident memory', value: after.rss_bytes / 1_048_576, unit: 'MB', limit: 90 };
}

async function* upgrades(platform: SupervisedPlatform, service: string): AsyncIterable<Row> {
  const { asked, failed } = await platform.under(['sys', 'bff', 'web'], async () => {
    for (let turn = 0; turn < UPGRADES; turn++) await platform.upgrade(service);
  });
  const reasons = [...new Set(failed.map(({ host, why }) => `${host} ${why}`))].join(', ');
  yield {
    name: `${service}: requests failed in ${UPGRADES} rolling upgrades`,
    value: failed.length,
    unit: `of ${asked}`,
    limit: 0,
    ...(reasons ? { note: reasons } : {}),
  };
}

async function* deaths(platform: SupervisedPlatform): AsyncIterable<Row> {
  const kill = async (): Promise<number> => {
    let killed = 0;
    const { failed } = await platform.under(['web'], async () => {
      const [instance] = await platform.instances('web');
      killed = Date.now();
      process.kill(instance?.pid ?? 0, 'SIGKILL');
      await delay(10_000);
    });
    return (Math.max(killed, ...failed.map(({ at }) => at)) - killed) / 1_000;
  };
  yield { name: 'SIGKILL of one instance of one: last failed request after', value: await kill(), unit: 's', limit: 4 };
  await platform.ask('POST', '/v1/captain/start-services', { service_types: ['web'] });
  while ((await platform.instances('web')).length < 2) await delay(100);
  yield { name: 'SIGKILL of one instance of two: last failed request after', value: await kill(), unit: 's', limit: 1 };
}
