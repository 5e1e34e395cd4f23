import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { closeSync, mkdirSync, openSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { HOST_WORKLOAD } from '@platform/kernel/host/boot/bootstrap';
import { publishEnrollment } from '@platform/kernel/host/machine/enrollment/enrollment';
import type { Invitation } from '@platform/kernel/host/machine/enrollment/invitation';
import { anchorsOf, readAuthority } from '@platform/kernel/identity/certificates/trust-anchors';
import { runningValkeyUrl } from '@platform/kernel/storage/valkey/embedded-valkey';
import type { KeyValue } from '@platform/sdk';
import { randomBytes } from 'node:crypto';
import { CuttingProxy } from '../../sdk/testing/servers/cutting-proxy.ts';

const MAIN = fileURLToPath(new URL('../../kernel/main.ts', import.meta.url));
const FLAGS = ['--disable-warning=ExperimentalWarning', '--experimental-ffi'];
const INHERITED = ['PATH', 'HOME', 'TZ', 'LANG', 'NODE_COMPILE_CACHE'];

interface DistantMachineOptions {
  /** Of the platform whose fleet it joins; its stores lie there. */
  readonly home: string;
  readonly ip: string;
  readonly edgePort: number;
  /** All services of the fleet. */
  readonly services: readonly string[];
  readonly kv: Pick<KeyValue, 'call'>;
}

/** A machine of a fleet on a loopback address of its own, whose way to both stores can be cut. */
export class DistantMachine implements AsyncDisposable {
  readonly ip: string;
  readonly dataDir: string;
  readonly #links: readonly CuttingProxy[];
  readonly #child: ChildProcess;

  private constructor(parts: { ip: string; dataDir: string; links: readonly CuttingProxy[]; child: ChildProcess }) {
    this.ip = parts.ip;
    this.dataDir = parts.dataDir;
    this.#links = parts.links;
    this.#child = parts.child;
  }

  static async join({ home, ip, edgePort, services, kv }: DistantMachineOptions): Promise<DistantMachine> {
    const url = () => new URL(runningValkeyUrl(home) as string);
    const postgres = () => Number(readFileSync(join(home, 'pg', 'postmaster.pid'), 'utf8').split('\n')[3]);
    const links = [await CuttingProxy.start(() => Number(url().port)), await CuttingProxy.start(postgres)] as const;
    const keyValue = url();
    keyValue.port = String(links[0].port);
    const secret = randomBytes(32);
    await publishEnrollment(kv as KeyValue, { ip, services: [HOST_WORKLOAD, ...services], secret, lifetimeS: 900 });
    const invitation: Invitation = {
      ip,
      domain: 'localhost',
      production: false,
      edge_port: edgePort,
      pq_mode: 'strict',
      anchors: anchorsOf(await readAuthority(home)),
      database: { host: '127.0.0.1', port: links[1].port, database: 'platform' },
      key_value_url: keyValue.href,
      services: ['captain'],
      fleet_services: services,
      enrollment: secret.toString('base64url'),
    };
    const folder = join(home, 'machines', ip);
    const dataDir = join(folder, 'data');
    mkdirSync(folder, { recursive: true, mode: 0o700 });
    writeFileSync(join(folder, 'invitation.json'), JSON.stringify(invitation), { mode: 0o600 });
    const log = openSync(join(folder, 'machine.log'), 'a', 0o600);
    const kept = Object.fromEntries(INHERITED.flatMap(name => (process.env[name] === undefined ? [] : [[name, process.env[name]]])));
    const child = spawn(process.execPath, [...FLAGS, MAIN, 'run', '--join', join(folder, 'invitation.json')], {
      env: { ...kept, PLATFORM_CAPTAIN_IP: ip, PLATFORM_DATA_DIR: dataDir },
      stdio: ['ignore', log, log],
    });
    closeSync(log);
    const machine = new DistantMachine({ ip, dataDir, links, child });
    while (!readFileSync(join(folder, 'machine.log'), 'utf8').includes('ready {')) {
      if (child.exitCode !== null)
        throw new Error(`the machine at ${ip} did not join:\n${readFileSync(join(folder, 'machine.log'), 'utf8')}`);
      await delay(50);
    }
    return machine;
  }

  /** Cuts its way to both stores, or opens it again. */
  part(parted: boolean): void {
    for (const link of this.#links) link.part(parted);
  }

  /** The machine is gone from one moment to the next, with all that runs on it. */
  async die(services: readonly number[]): Promise<void> {
    if (this.#child.exitCode !== null || this.#child.signalCode !== null) return;
    const gone = once(this.#child, 'exit');
    this.#child.kill('SIGKILL');
    for (const pid of services) process.kill(pid, 'SIGKILL');
    await gone;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.die([]);
    for (const link of this.#links) await link[Symbol.asyncDispose]();
  }
}
