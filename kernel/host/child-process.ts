import { spawn } from 'node:child_process';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { KeyValue, Logger, Placement } from '@platform/sdk';
import { dropInstance } from '../routing/directory.ts';
import type { Bootstrap } from './bootstrap.ts';
import { directoryStore } from './key-value-port.ts';
import { ServiceAlerts } from './process/service-alerts.ts';
import { SupervisedProcess } from './process/supervised-process.ts';
import type { LifeSettings } from './process/process-life.ts';
import { processFlags } from './process-flags.ts';

const MAIN = fileURLToPath(new URL('../main.ts', import.meta.url));
/** What a child inherits of the environment: nothing that names a key of the certificate authority (doc3, supervisor 12). */
const INHERITED = ['PATH', 'HOME', 'TZ', 'LANG', 'NODE_ENV', 'NODE_COMPILE_CACHE', 'MALLOC_ARENA_MAX', 'NODE_EXTRA_CA_CERTS'];

export interface ServiceProcessOptions {
  readonly name: string;
  readonly pluginDirectory: string;
  readonly placement: Placement;
  /** Made anew for every start: enrollment secrets live 120 s. Fails while a store is away. */
  readonly bootstrap: () => Promise<Bootstrap>;
  readonly environment: Readonly<Record<string, string | undefined>>;
  /** Settings whose names start so are the plugin's own. */
  readonly settings: readonly string[];
  readonly life?: Partial<LifeSettings>;
  readonly kv: KeyValue;
  readonly dataDir: string;
  readonly log: Logger;
}

/** One service in a process of its own, started with its secrets over a pipe and kept running; whoever looks at the platform's health sees when it was given up. */
export function serviceProcess({ name, pluginDirectory, placement, bootstrap, environment, settings, life, kv, dataDir, log }: ServiceProcessOptions): SupervisedProcess {
  const alerts = new ServiceAlerts(kv, log);
  const env = Object.fromEntries(Object.entries(environment).filter(([variable]) => INHERITED.includes(variable) || settings.some(prefix => variable.startsWith(prefix))));
  return new SupervisedProcess({
    name,
    log,
    prepare: async () => {
      const prepared = await bootstrap();
      return () => {
        const child = spawn(process.execPath, [...processFlags(placement), MAIN, 'run', '--child', '--only', name, '--plugin', pluginDirectory], {
          env,
          stdio: ['ignore', 'inherit', 'inherit', 'pipe', 'ipc'],
          detached: true,
        });
        const pipe = child.stdio[3] as NodeJS.WritableStream;
        pipe.on('error', () => undefined);
        pipe.end(JSON.stringify(prepared));
        return child;
      };
    },
    watch: {
      // Its row would be taken for alive until it is stale (SUP-027).
      down: pid => void dropInstance(directoryStore(kv), name, pid).catch(error => log.warn({ service_type: name, err: error }, 'the row of a dead process stays until it is stale')),
      raise: ({ reason, restarts }) => void alerts.raise({ service_type: name, restarts, reason, log_path: join(dataDir, 'logs', `${name}.log`), at: new Date().toISOString() }),
      clear: () => void alerts.clear(name),
    },
    ...(life ? { settings: life } : {}),
  });
}
