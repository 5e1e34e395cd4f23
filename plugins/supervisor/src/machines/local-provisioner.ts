import { spawn } from 'node:child_process';
import { closeSync, existsSync, mkdirSync, openSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { ProcessHost } from '@platform/sdk';
import type { HostSamples } from './host-samples.ts';
import { readEnvironmentFile } from './environment-file.ts';
import type { Provisioner } from './machines.ts';

const JOIN_MS = 120_000;
const END_MS = 60_000;
const LOOK_MS = 100;
const INHERITED = ['PATH', 'HOME', 'TZ', 'LANG', 'NODE_ENV', 'NODE_COMPILE_CACHE'];

interface LocalMachine {
  readonly name: string;
  readonly ip: string;
  readonly pid: number;
}

/** A machine that is another supervisor on another loopback address: for development and tests. */
export class LocalProvisioner implements Provisioner {
  readonly kind = 'local';
  readonly #machine: Pick<ProcessHost, 'invite' | 'hostCommand' | 'ip'>;
  readonly #samples: HostSamples;
  readonly #directory: string;
  readonly #envFile: string;

  constructor({
    machine,
    samples,
    directory,
    envFile,
  }: { machine: Pick<ProcessHost, 'invite' | 'hostCommand' | 'ip'>; samples: HostSamples; directory: string; envFile: string }) {
    this.#machine = machine;
    this.#samples = samples;
    this.#directory = directory;
    this.#envFile = envFile;
  }

  unable(): string | undefined {
    return this.#machine.ip.startsWith('127.')
      ? undefined
      : 'The machine kit `local` makes machines on loopback addresses, and this one is not on one.';
  }

  names(): string[] {
    return this.#known().map(({ name }) => name);
  }

  async create(name: string): Promise<string> {
    const taken = new Set([...(await this.#samples.order()), ...this.#known().map(({ ip }) => ip)]);
    const ip = Array.from({ length: 253 }, (_, at) => `127.0.0.${at + 2}`).find(each => !taken.has(each));
    if (ip === undefined) throw new Error('no loopback address is free');
    const home = join(this.#directory, ip);
    mkdirSync(home, { recursive: true, mode: 0o700 });
    const invitation = join(home, 'invitation.json');
    writeFileSync(invitation, await this.#machine.invite(ip, []), { mode: 0o600 });
    const { file, args } = this.#machine.hostCommand(invitation);
    const log = openSync(join(home, 'machine.log'), 'a', 0o600);
    const environment = Object.fromEntries(
      INHERITED.flatMap(variable => (process.env[variable] === undefined ? [] : [[variable, process.env[variable] as string]])),
    );
    const child = spawn(file, [...args], {
      env: { ...environment, ...readEnvironmentFile(this.#envFile), PLATFORM_CAPTAIN_IP: ip, PLATFORM_DATA_DIR: join(home, 'data') },
      stdio: ['ignore', log, log],
      detached: true,
    });
    closeSync(log);
    child.unref();
    if (child.pid === undefined) throw new Error('the machine could not be started');
    writeFileSync(join(home, 'machine.json'), JSON.stringify({ name, ip, pid: child.pid } satisfies LocalMachine), { mode: 0o600 });
    const joined = () => this.#samples.machines().then(machines => machines.some(machine => machine.ip === ip));
    if (await within(JOIN_MS, async () => (await joined()) || child.exitCode !== null)) if (await joined()) return ip;
    const said = tail(join(home, 'machine.log'));
    await this.destroy(ip);
    throw new Error(`the machine at ${ip} did not join: ${said}`);
  }

  async destroy(ip: string): Promise<void> {
    const machine = this.#known().find(each => each.ip === ip);
    if (!machine) return;
    const alive = () => {
      try {
        process.kill(machine.pid, 0);
        return readFileSync(`/proc/${machine.pid}/cmdline`, 'utf8').includes('--join');
      } catch {
        return false;
      }
    };
    if (alive()) process.kill(machine.pid, 'SIGTERM');
    if (!(await within(END_MS, async () => !alive()))) process.kill(-machine.pid, 'SIGKILL');
    rmSync(join(this.#directory, ip), { recursive: true, force: true });
  }

  #known(): LocalMachine[] {
    if (!existsSync(this.#directory)) return [];
    return readdirSync(this.#directory).flatMap(name => {
      const path = join(this.#directory, name, 'machine.json');
      return existsSync(path) ? [JSON.parse(readFileSync(path, 'utf8')) as LocalMachine] : [];
    });
  }
}

async function within(ms: number, done: () => Promise<boolean>): Promise<boolean> {
  for (const end = performance.now() + ms; performance.now() < end; ) {
    if (await done()) return true;
    await new Promise(resolve => setTimeout(resolve, LOOK_MS));
  }
  return done();
}

const tail = (path: string): string => (existsSync(path) ? readFileSync(path, 'utf8').trim().split('\n').slice(-3).join(' ') : '');
