import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { Supervisor } from '../supervisor.ts';
import { LocalProvisioner } from './local-provisioner.ts';
import type { Provisioner } from './machines.ts';
import { ModuleKitProvisioner } from './module-kit-provisioner.ts';

const KITS = fileURLToPath(new URL('../../machines/', import.meta.url));

/** What the operator chose to make machines with: `local`, a kit of the platform, or the folder of a module of his own (bare metal). */
export function provisionerOf({ ctx, samples }: Supervisor): Provisioner | undefined {
  const { machineKit, machineEnvFile: envFile } = ctx.config;
  const { dataDir } = ctx.platform;
  if (machineKit === '') return undefined;
  const directory = ctx.files.directory('machines');
  if (machineKit === 'local') return new LocalProvisioner({ machine: ctx.processes, samples, directory, envFile });
  const shipped = join(KITS, machineKit);
  const module = /^[a-z-]+$/.test(machineKit) && existsSync(shipped) ? shipped : machineKit;
  return new ModuleKitProvisioner({ module, machine: ctx.processes, samples, dataDir, directory, envFile, log: ctx.log });
}
