import { spawn } from 'node:child_process';
import {
  accessSync,
  constants,
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { delimiter, join } from 'node:path';
import { type Logger, type ProcessHost, SealedFile } from '@platform/sdk';
import { contentOf } from './environment-file.ts';
import type { HostSamples } from './host-samples.ts';
import type { Provisioner } from './machines.ts';

const RUN_MS = 900_000;
const STATE = 'terraform.tfstate';
const TOLD_TAIL = 2_000;

interface Outputs {
  readonly ip: { readonly value: string };
  readonly id: { readonly value: string };
}

interface ModuleKitParts {
  /** Folder of a module with the inputs and outputs that machines/README.md writes down. */
  readonly module: string;
  readonly machine: Pick<ProcessHost, 'invite' | 'ip'>;
  readonly samples: HostSamples;
  readonly dataDir: string;
  /** Where a machine has its folder. */
  readonly directory: string;
  readonly envFile: string;
  readonly log: Logger;
  /** Folders to look for the program in; those of PATH when absent. */
  readonly path?: string;
}

/**
 * Machines by a module that OpenTofu or Terraform runs: planned and applied in one step, one run at a time, each machine with a state of
 * its own (SUP-057).
 */
export class ModuleKitProvisioner implements Provisioner {
  readonly kind = 'module';
  readonly #parts: ModuleKitParts;
  readonly #home: string;

  constructor(parts: ModuleKitParts) {
    this.#parts = parts;
    this.#home = parts.directory;
  }

  unable(): string | undefined {
    if (!existsSync(join(this.#parts.module, 'main.tf')))
      return `PLATFORM_CAPTAIN_MACHINE_KIT: ${this.#parts.module} is no kit and no folder with a main.tf.`;
    if (!this.#program())
      return 'Neither tofu nor terraform is on PATH: install OpenTofu 1.6 or newer, or set PLATFORM_CAPTAIN_MACHINE_KIT=local.';
    return undefined;
  }

  async create(name: string): Promise<string> {
    const hint = await this.#hint();
    const inputs = {
      name,
      ip_hint: hint,
      image: process.env['PLATFORM_CAPTAIN_MACHINE_IMAGE'] ?? 'platform',
      env_file: contentOf(this.#parts.envFile),
      join: await this.#parts.machine.invite(hint, []),
    };
    const home = join(this.#home, name);
    mkdirSync(home, { recursive: true, mode: 0o700 });
    const { ip, id } = await this.#run(name, inputs, 'apply');
    writeFileSync(join(home, 'module.json'), JSON.stringify({ name, ip: ip.value, id: id.value }), { mode: 0o600 });
    return ip.value;
  }

  async destroy(ip: string): Promise<void> {
    const name = this.names().find(
      each => (JSON.parse(readFileSync(join(this.#home, each, 'module.json'), 'utf8')) as { ip: string }).ip === ip,
    );
    if (name === undefined) return;
    // What it was told does not matter any more, but every input must be there.
    await this.#run(name, { name, ip_hint: ip, image: 'platform', env_file: '', join: '' }, 'destroy');
    rmSync(join(this.#home, name), { recursive: true, force: true });
  }

  /** One run in a private folder that is gone afterwards; the state goes back sealed, whatever became of the run. */
  async #run(name: string, inputs: Readonly<Record<string, string>>, what: 'apply' | 'destroy'): Promise<Outputs> {
    // It holds what the program was told, so it lies in clear only while the program runs (SUP-059).
    const state = new SealedFile(join(this.#home, name, 'state.sealed'), { dataDir: this.#parts.dataDir, use: 'machine-state' });
    const folder = mkdtempSync(join(tmpdir(), 'platform-machine-'));
    try {
      cpSync(this.#parts.module, folder, { recursive: true });
      const before = state.read();
      if (before) writeFileSync(join(folder, STATE), before.content, { mode: 0o600 });
      const environment = {
        ...ofSystem(),
        TF_IN_AUTOMATION: '1',
        TF_INPUT: '0',
        ...Object.fromEntries(Object.entries(inputs).map(([key, value]) => [`TF_VAR_${key}`, value])),
      };
      try {
        await this.#call(folder, environment, ['init', '-input=false', '-no-color']);
        // In one step: a saved plan would hold the inputs in clear (facts, section 1).
        await this.#call(folder, environment, [what, '-auto-approve', '-input=false', '-no-color', '-lock-timeout=60s']);
        return what === 'apply'
          ? (JSON.parse(await this.#call(folder, environment, ['output', '-json'])) as Outputs)
          : { ip: { value: '' }, id: { value: '' } };
      } finally {
        if (existsSync(join(folder, STATE))) state.write(readFileSync(join(folder, STATE)), Date.now());
      }
    } finally {
      rmSync(folder, { recursive: true, force: true });
    }
  }

  #call(cwd: string, env: Readonly<Record<string, string>>, args: readonly string[]): Promise<string> {
    const program = this.#program();
    if (!program) throw new Error(this.unable());
    return new Promise((resolve, reject) => {
      const child = spawn(program, [...args], { cwd, env: { ...env }, stdio: ['ignore', 'pipe', 'pipe'], timeout: RUN_MS });
      let [said, failed] = ['', ''];
      // Always drained: a reader that stops kills the run in its middle.
      child.stdout.setEncoding('utf8').on('data', (text: string) => (said += text));
      child.stderr.setEncoding('utf8').on('data', (text: string) => (failed = (failed + text).slice(-TOLD_TAIL)));
      child.once('error', reject);
      child.once('close', code => {
        if (code === 0) return resolve(said);
        reject(new Error(`${args[0]} ended with ${code}: ${withoutSecrets(failed, env)}`));
      });
    });
  }

  #program(): string | undefined {
    const folders = (this.#parts.path ?? process.env['PATH'] ?? '').split(delimiter).filter(Boolean);
    return ['tofu', 'terraform'].flatMap(name => folders.map(folder => join(folder, name))).find(isExecutable);
  }

  /** Where the next machine may be; what the module says counts. */
  async #hint(): Promise<string> {
    const order = await this.#parts.samples.order();
    const [, head = '', last = '1'] = /^(.*\.)(\d+)$/.exec(order.at(-1) ?? this.#parts.machine.ip) ?? [];
    return `${head}${Math.min(254, Number(last) + 1)}`;
  }

  /** Of those that were made to the end: one that was not is gone on with, under its name. */
  names(): string[] {
    return existsSync(this.#home) ? readdirSync(this.#home).filter(name => existsSync(join(this.#home, name, 'module.json'))) : [];
  }
}

/** A file of its configuration that is not there would be a warning before every answer. */
function ofSystem(): Record<string, string> {
  const { TF_CLI_CONFIG_FILE: _, ...rest } = process.env;
  return Object.fromEntries(
    Object.entries(rest).flatMap(([name, value]) => (value === undefined || name.startsWith('PLATFORM_') ? [] : [[name, value]])),
  );
}

/** What a program says of a failure may repeat what it was told. */
function withoutSecrets(text: string, env: Readonly<Record<string, string>>): string {
  const secrets = [env['TF_VAR_env_file'], env['TF_VAR_join']].flatMap(value => (value ?? '').split('\n')).filter(line => line.length > 3);
  return secrets.reduce((rest, secret) => rest.replaceAll(secret, '[sensitive]'), text).trim();
}

function isExecutable(path: string): boolean {
  try {
    accessSync(path, constants.X_OK);
    return true;
  } catch {
    return false;
  }
}
