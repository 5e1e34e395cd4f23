import { readdirSync, readFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { ConfigError, formatFaults, KERNEL_CONFIG, readConfig } from './configuration.ts';
import type { HostOptions } from './host.ts';

const ROOT = fileURLToPath(new URL('../../', import.meta.url));

/** Host options from the environment and the command line. Throws `ConfigError` naming every wrong variable. */
export function hostOptions(args: readonly string[], given: Readonly<Record<string, string | undefined>>, progress: (text: string) => void): HostOptions {
  const distribution = readDistribution(args);
  // What a distribution ships with is a default: the operator's own setting wins.
  const environment = { ...distribution.settings, ...given };
  const { config, faults } = readConfig(KERNEL_CONFIG, environment);
  if (faults.length > 0) throw new ConfigError(formatFaults(faults));
  const read = <T>(name: string) => config[name] as T;
  const prefer = args[args.indexOf('--prefer-kv') + 1];
  return {
    domain: read('domain'),
    production: read('environment') === 'production',
    // Once and here: what is given on is read by processes that stand in other folders.
    dataDir: resolve(read<string | undefined>('dataDir') ?? join(ROOT, '.data')),
    edgePort: read('edgePort'),
    logLevel: read('logLevel'),
    pqMode: read('pqMode'),
    validity: { rootDays: read('rootDays'), intermediateDays: read('intermediateDays') },
    lastResortMs: read<number>('lastResortS') * 1_000,
    databaseUrl: read('databaseUrl'),
    keyValueUrl: read('keyValueUrl'),
    backends: { connections: read('backendConnections'), streams: read('backendStreams'), streamsPerAddress: read('backendStreamsPerAddress'), waitMs: read('backendWaitMs') },
    pluginDirs: read<string>('pluginDirs').split(':').filter(Boolean),
    services: distribution.services,
    split: args.includes('--split') || distribution.process_per_service,
    trustVerticals: args.includes('--trust-verticals'),
    environment,
    pretty: read('environment') !== 'production',
    ...(args.includes('--prefer-kv') && (prefer === 'wasm' || prefer === 'path') ? { preferKeyValue: prefer } : {}),
    progress,
  };
}

interface Distribution {
  readonly process_per_service: boolean;
  readonly services: readonly string[];
  readonly settings: Readonly<Record<string, string>>;
}

/** What is started, and how: `--distribution NAME` of catalog/distributions, all in one process otherwise. */
function readDistribution(args: readonly string[]): Distribution {
  const name = args.includes('--distribution') ? (args[args.indexOf('--distribution') + 1] ?? '') : 'all-in-one';
  const directory = join(ROOT, 'catalog', 'distributions');
  const known = readdirSync(directory).map(file => file.replace(/\.json$/, ''));
  if (!known.includes(name)) throw new ConfigError(`--distribution is one of ${known.join(', ')}`);
  return JSON.parse(readFileSync(join(directory, `${name}.json`), 'utf8')) as Distribution;
}
