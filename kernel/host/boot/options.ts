import { readdirSync, readFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { ConfigError, formatFaults, KERNEL_CONFIG, readConfig } from './configuration.ts';
import { readInvitation } from '../machine/enrollment/invitation.ts';
import type { HostOptions } from '../host-options.ts';
import { shippedServices } from '../plugin/plugin-intake.ts';

const ROOT = fileURLToPath(new URL('../../../', import.meta.url));

/** Host options from the environment and the command line. Throws `ConfigError` naming every wrong variable. */
export function hostOptions(
  args: readonly string[],
  given: Readonly<Record<string, string | undefined>>,
  progress: (text: string) => void,
): HostOptions {
  const distribution = readDistribution(args);
  // What a distribution ships with is a default: the operator's own setting wins.
  const environment = { ...distribution.settings, ...given };
  const { config, faults } = readConfig(KERNEL_CONFIG, environment);
  if (faults.length > 0) throw new ConfigError(formatFaults(faults));
  const read = <T>(name: string) => config[name] as T;
  const invited = args.includes('--join') ? readInvitation(args[args.indexOf('--join') + 1] ?? '') : undefined;
  if (invited && invited.ip !== read<string>('ip'))
    throw new ConfigError(`the invitation is for the machine at ${invited.ip}, and PLATFORM_CAPTAIN_IP says ${read<string>('ip')}`);
  const prefer = args[args.indexOf('--prefer-kv') + 1];
  return {
    domain: invited?.domain ?? read('domain'),
    production: invited?.production ?? read('environment') === 'production',
    ...(invited ? { join: invited } : {}),
    // Once and here: what is given on is read by processes that stand in other folders.
    dataDir: resolve(read<string | undefined>('dataDir') ?? join(ROOT, '.data')),
    edgePort: invited?.edge_port ?? read('edgePort'),
    logLevel: read('logLevel'),
    pqMode: invited?.pq_mode ?? read('pqMode'),
    ip: read('ip'),
    orphanMs: read<number>('orphanS') * 1_000,
    releasesDir: read('releasesDir'),
    validity: { rootDays: read('rootDays'), intermediateDays: read('intermediateDays') },
    databaseUrl: read('databaseUrl'),
    keyValueUrl: read('keyValueUrl'),
    databasePool: read('databasePool'),
    backends: {
      connections: read('backendConnections'),
      streams: read('backendStreams'),
      streamsPerAddress: read('backendStreamsPerAddress'),
      waitMs: read('backendWaitMs'),
    },
    pluginDirs: read<string>('pluginDirs').split(':').filter(Boolean),
    services: asked(read<string | undefined>('services'), invited?.services ?? distribution.services, progress),
    split: args.includes('--split') || distribution.process_per_service,
    trustVerticals: args.includes('--trust-verticals'),
    shipped: distribution.settings,
    environment,
    pretty: read('environment') !== 'production',
    ...(args.includes('--prefer-kv') && (prefer === 'wasm' || prefer === 'path') ? { preferKeyValue: prefer } : {}),
    progress,
  };
}

/**
 * What is started at boot: the distribution's services, or those that the operator names. A name that nobody knows is passed over
 * (G-CAP-02).
 */
function asked(named: string | undefined, shipped: readonly string[], progress: (text: string) => void): readonly string[] {
  if (named === undefined) return shipped;
  const known = new Set(shippedServices().map(({ service_type }) => service_type));
  const names = named
    .split(',')
    .map(name => name.trim())
    .filter(Boolean);
  for (const name of names.filter(each => !known.has(each)))
    progress(`! PLATFORM_SERVICES names ${name}, which is no service of the platform; it is passed over`);
  return names.filter(name => known.has(name));
}

interface Distribution {
  readonly process_per_service: boolean;
  readonly services: readonly string[];
  readonly settings: Readonly<Record<string, string>>;
}

/** The same as its file has it: `all` stands for every service of the catalog. */
type Shipped = Omit<Distribution, 'services'> & { readonly services: 'all' | readonly string[] };

/** What is started, and how: `--distribution NAME` of catalog/distributions, all in one process otherwise. */
function readDistribution(args: readonly string[]): Distribution {
  const name = args.includes('--distribution') ? (args[args.indexOf('--distribution') + 1] ?? '') : 'all-in-one';
  const directory = join(ROOT, 'catalog', 'distributions');
  const known = readdirSync(directory).map(file => file.replace(/\.json$/, ''));
  if (!known.includes(name)) throw new ConfigError(`--distribution is one of ${known.join(', ')}`);
  const { services, ...distribution } = JSON.parse(readFileSync(join(directory, `${name}.json`), 'utf8')) as Shipped;
  // What watches over the others, in the first tier, is started everywhere and named nowhere.
  const every = shippedServices().filter(({ start_priority }) => start_priority > 0);
  return { ...distribution, services: services === 'all' ? every.map(({ service_type }) => service_type) : services };
}
