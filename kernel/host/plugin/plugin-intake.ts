import { reasonOf } from '@platform/sdk';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { Manifest } from '../../base/manifest.ts';
import { checkManifest, formatFinding } from '@platform/checks';
import { ConfigError, type ConfigFault, formatFaults, KERNEL_CONFIG } from '../boot/configuration.ts';
import { explainKeys } from '../keys/key-settings.ts';
import { findPlugins, type FoundPlugin, importPlugin, readPlugin } from './loader.ts';
import type { LoadedService } from '../platform-process-options.ts';
import { readBehindWalls } from './read-behind-walls.ts';
import { readSettings, type ServiceSettings } from '../boot/settings.ts';

const ROOT = fileURLToPath(new URL('../../../', import.meta.url));

/** A plugin that is not running, and why. */
export interface FailedPlugin {
  readonly plugin: string;
  readonly reason: string;
}

/** What the distribution says of a service of the platform (catalog/platform.json). */
export interface ShippedService {
  readonly package: string;
  readonly service_type: string;
  readonly start_priority: number;
  readonly singleton: boolean;
  readonly placement: readonly string[];
  readonly min_instances: number;
}

/** A plugin with its line of the catalog, where it has one. */
export type CatalogPlugin = FoundPlugin & { readonly shipped?: ShippedService };

/** Everything that could run here: what was asked for, what else the platform ships, and verticals. */
export interface AllPlugins {
  readonly platform: readonly CatalogPlugin[];
  readonly others: readonly CatalogPlugin[];
  readonly verticals: readonly FoundPlugin[];
}

/** Every line of the catalog. */
export const shippedServices = (): readonly ShippedService[] =>
  (JSON.parse(readFileSync(join(ROOT, 'catalog', 'platform.json'), 'utf8')) as { services: ShippedService[] }).services;

/**
 * Reads and checks every plugin found. A broken platform plugin stops the boot; a broken vertical fails alone (G-K-21). What tier 0 holds
 * cannot be left out (G-CAP-02).
 */
export async function readAll(
  { pluginDirs, services, without = [] }: { pluginDirs: readonly string[]; services: readonly string[]; without?: readonly string[] },
  failed: FailedPlugin[],
): Promise<AllPlugins> {
  const all: CatalogPlugin[] = [];
  for (const shipped of shippedServices().filter(({ service_type }) => !without.includes(service_type)))
    all.push({ ...(await readPlugin(join(ROOT, 'plugins', shipped.package))), shipped });
  const wanted = ({ shipped }: CatalogPlugin) => shipped?.start_priority === 0 || services.includes(shipped?.service_type ?? '');
  const platform = all.filter(wanted);
  const known = new Map<string, Manifest>(platform.map(({ manifest }) => [manifest.id, manifest]));
  for (const { manifest } of platform) refuseFindings(manifest, known);
  const verticals: FoundPlugin[] = [];
  for (const directory of findPlugins(pluginDirs)) {
    const plugin = await readVertical(directory, known, failed);
    if (plugin) {
      verticals.push(plugin);
      known.set(plugin.manifest.id, plugin.manifest);
    }
  }
  return { platform, others: all.filter(plugin => !wanted(plugin)), verticals };
}

/** Reads one folder from outside; a fault goes into `failed`, in the place of what was said of the folder before. */
export async function readVertical(
  directory: string,
  known: ReadonlyMap<string, Manifest>,
  failed: FailedPlugin[],
): Promise<FoundPlugin | undefined> {
  forgive(failed, directory);
  try {
    const plugin = await readBehindWalls(directory);
    refuseFindings(plugin.manifest, known, { outside: true });
    return plugin;
  } catch (error) {
    failed.push({ plugin: directory, reason: reasonOf(error) });
    return undefined;
  }
}

/** Takes back what was said of a plugin or folder. */
export function forgive(failed: FailedPlugin[], plugin: string): void {
  const at = failed.findIndex(fault => fault.plugin === plugin);
  if (at >= 0) failed.splice(at, 1);
}

/** Throws with everything that is wrong with a manifest. */
export function refuseFindings(manifest: Manifest, known: ReadonlyMap<string, Manifest>, from: { outside?: boolean } = {}): void {
  const errors = checkManifest(manifest, known, from).filter(({ id }) => id.startsWith('E'));
  if (errors.length > 0) throw new Error(errors.map(formatFinding).join('\n'));
}

export function readAllSettings(
  found: readonly FoundPlugin[],
  { environment, production }: { environment: Readonly<Record<string, string | undefined>>; production: boolean },
): Map<string, ServiceSettings> {
  const faults: ConfigFault[] = [];
  const settings = new Map<string, ServiceSettings>();
  for (const { manifest } of found) {
    const read = readSettings(manifest, environment, production);
    faults.push(...(manifest.vertical === 'platform' ? read.faults : []));
    settings.set(manifest.id, read);
  }
  if (faults.length > 0) throw new ConfigError(formatFaults(faults));
  return settings;
}

/** A distribution that sets what nothing reads promises what is not there. */
export function refuseUnknownSettings(shipped: Readonly<Record<string, string>>, found: readonly FoundPlugin[]): void {
  const namesOf = (schema: unknown) =>
    Object.values((schema as { properties?: Record<string, { env?: string }> } | undefined)?.properties ?? {}).flatMap(({ env }) =>
      env === undefined ? [] : [env],
    );
  const known = new Set([
    ...namesOf(KERNEL_CONFIG),
    ...found.flatMap(({ manifest }) => [...namesOf(manifest.config), ...explainKeys(manifest).map(({ variable }) => variable)]),
  ]);
  const unknown = Object.keys(shipped).filter(name => !known.has(name));
  if (unknown.length > 0)
    throw new ConfigError(
      `The distribution sets ${unknown.join(', ')}, which nothing reads. Take it out of catalog/distributions, or correct its name.`,
    );
}

export async function importAll(
  found: readonly FoundPlugin[],
  settings: ReadonlyMap<string, ServiceSettings>,
  failed: FailedPlugin[],
): Promise<LoadedService[]> {
  const services: LoadedService[] = [];
  for (const plugin of found) {
    try {
      const { config = {}, keys = {} } = settings.get(plugin.manifest.id) ?? {};
      services.push({ plugin: await importPlugin(plugin), manifest: plugin.manifest, config, keys });
    } catch (error) {
      if (plugin.manifest.vertical === 'platform') throw new Error(`${plugin.manifest.id} failed to load`, { cause: error });
      failed.push({ plugin: plugin.manifest.id, reason: reasonOf(error) });
    }
  }
  return services;
}
