import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { ConfigError, formatFaults, KERNEL_CONFIG, readConfig } from './configuration.ts';
import type { HostOptions } from './host.ts';

const ROOT = fileURLToPath(new URL('../../', import.meta.url));

/** Host options from the environment and the command line. Throws `ConfigError` naming every wrong variable. */
export function hostOptions(args: readonly string[], environment: Readonly<Record<string, string | undefined>>, progress: (text: string) => void): HostOptions {
  const { config, faults } = readConfig(KERNEL_CONFIG, environment);
  if (faults.length > 0) throw new ConfigError(formatFaults(faults));
  const read = <T>(name: string) => config[name] as T;
  const prefer = args[args.indexOf('--prefer-kv') + 1];
  return {
    domain: read('domain'),
    production: read('environment') === 'production',
    dataDir: read<string | undefined>('dataDir') ?? join(ROOT, '.data'),
    edgePort: read('edgePort'),
    logLevel: read('logLevel'),
    pqMode: read('pqMode'),
    databaseUrl: read('databaseUrl'),
    keyValueUrl: read('keyValueUrl'),
    pluginDirs: read<string>('pluginDirs').split(':').filter(Boolean),
    split: args.includes('--split'),
    trustVerticals: args.includes('--trust-verticals'),
    environment,
    pretty: read('environment') !== 'production',
    ...(args.includes('--prefer-kv') && (prefer === 'wasm' || prefer === 'path') ? { preferKeyValue: prefer } : {}),
    progress,
  };
}
