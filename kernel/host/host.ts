import { createHash, randomBytes } from 'node:crypto';
import { existsSync, mkdirSync, readFileSync, rmSync, watch } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { DisposalStack } from '../base/disposal-stack.ts';
import { writeDurably } from '../base/durable-file.ts';
import type { Manifest } from '../base/manifest.ts';
import { anchorsOf, openAuthority } from '../identity/trust-anchors.ts';
import type { PqMode } from '../identity/tls.ts';
import { type Bootstrap, platformHost, publicOrigin } from './bootstrap.ts';
import { checkManifest, formatFinding } from './checks.ts';
import { ServiceProcess } from './child-process.ts';
import { type ConfigFault, formatFaults, readConfig } from './configuration.ts';
import { findPlugins, type FoundPlugin, importPlugin, readPlugin } from './loader.ts';
import { type LoadedService, PlatformProcess } from './platform-process.ts';
import { openStores, type Stores } from './stores.ts';
import { freePort } from '../storage/free-port.ts';
import { publishEnrollment } from './enrollment.ts';
import { HostWorkload } from './host-workload.ts';

export interface HostOptions {
  readonly domain: string;
  readonly production: boolean;
  readonly dataDir: string;
  readonly edgePort: number;
  readonly logLevel: string;
  readonly pqMode: PqMode;
  readonly databaseUrl: string | undefined;
  readonly keyValueUrl: string | undefined;
  readonly pluginDirs: readonly string[];
  /** One process per service instead of one for all. */
  readonly split: boolean;
  /** Runs verticals in the host process; development only. */
  readonly trustVerticals: boolean;
  readonly environment: Readonly<Record<string, string | undefined>>;
  readonly pretty: boolean;
  readonly preferKeyValue?: 'wasm' | 'path';
  readonly progress: (text: string) => void;
}

export class ConfigError extends Error {}

const ROOT = fileURLToPath(new URL('../../', import.meta.url));
const BOOTSTRAP_PASSWORD = 'bootstrap.password';

/** What `ready` says, one JSON object on one line (day-one). */
export interface ReadyLine {
  readonly console: string;
  readonly auth: string;
  readonly gateway: string;
  readonly issuer: string;
  readonly data_dir: string;
  readonly pid: number;
  readonly ca_root: string;
  readonly build: string;
  readonly plugins: readonly string[];
}

/** The whole platform on one machine: authority, stores, platform services, verticals. `stop` drains, then takes everything down. */
export class Host {
  readonly ready: ReadyLine;
  /** E-mail and one-time password of the administrator; only on the first start, shown once. */
  readonly firstStart: { email: string; password: string } | undefined;
  readonly failed: { plugin: string; reason: string }[];
  readonly main: PlatformProcess | undefined;
  readonly #owned: DisposalStack;
  readonly #verticals: DisposalStack;

  private constructor(parts: { ready: ReadyLine; firstStart: Host['firstStart']; failed: Host['failed']; main: PlatformProcess | undefined; owned: DisposalStack; verticals: DisposalStack }) {
    this.ready = parts.ready;
    this.firstStart = parts.firstStart;
    this.failed = parts.failed;
    this.main = parts.main;
    this.#owned = parts.owned;
    this.#verticals = parts.verticals;
  }

  static async start(asked: HostOptions): Promise<Host> {
    const owned = new DisposalStack();
    try {
      const options = await withEdgePort(asked);
      const verticals = owned.own(new DisposalStack());
      const parts = await bringUp(owned, verticals, options);
      return new Host({ ...parts, owned, verticals });
    } catch (error) {
      await owned[Symbol.asyncDispose]().catch(() => undefined);
      throw error;
    }
  }

  /** Verticals first, while what they use still answers; then everything of the platform drains, and only then stops. */
  async stop(): Promise<void> {
    await this.#verticals[Symbol.asyncDispose]();
    await this.main?.drain();
    await this.#owned[Symbol.asyncDispose]();
  }
}

async function bringUp(owned: DisposalStack, verticalStack: DisposalStack, options: HostOptions): Promise<{ ready: ReadyLine; firstStart: Host['firstStart']; failed: Host['failed']; main: PlatformProcess | undefined }> {
  const { dataDir, progress, domain } = options;
  mkdirSync(dataDir, { recursive: true, mode: 0o711 });
  const failed: Host['failed'] = [];
  progress('Opening the certificate authority');
  const authority = await openAuthority(dataDir);
  const storesOpening = openStores(owned, { ...options, authority });
  const found = await readAll(options, failed);
  const platform = found.filter(({ manifest }) => manifest.vertical === 'platform');
  const verticals = found.filter(({ manifest }) => manifest.vertical !== 'platform');
  const firstPassword = prepareBootstrapPassword(dataDir);
  const environment = { PLATFORM_AUTH_BOOTSTRAP_PASSWORD_REF: `file://${join(dataDir, 'keys', BOOTSTRAP_PASSWORD)}`, ...defaultKeys(options), ...options.environment };
  const configs = readConfigs(found, environment);
  const stores = await storesOpening;

  const build = buildHash();
  const manifests = platform.map(({ manifest }) => manifest);
  const base: Bootstrap = { domain, production: options.production, dataDir, build, logLevel: options.logLevel, edgePort: options.edgePort, pqMode: options.pqMode, anchors: anchorsOf(authority), database: stores.database, keyValueUrl: stores.keyValueUrl, manifests, enrollment: {} };
  progress('Preparing databases');
  for (const { manifest } of found) await stores.ensureService(manifest.id);

  let main: PlatformProcess | undefined;
  if (options.split) await startSplit(owned, options, { base, found: platform, environment, stores });
  else {
    const trusted = options.trustVerticals ? found : platform;
    const services = await importAll(trusted, configs, failed);
    main = await PlatformProcess.start({ bootstrap: { ...base, manifests: trusted.map(({ manifest }) => manifest) }, services, authority, processName: 'platform', pretty: options.pretty, environment, failedPlugins: () => failed, progress });
    owned.own(main);
  }
  const host = owned.own(await HostWorkload.open({ bootstrap: base, authority, log: main?.telemetry }));
  const running = new Map<string, ServiceProcess>();
  const startVertical = async (plugin: FoundPlugin) => {
    if (running.has(plugin.manifest.id)) return;
    const process = await launchVertical(plugin, { base, options, environment, stores, host, siblings: verticals });
    running.set(plugin.manifest.id, verticalStack.own(process));
  };
  if (!options.trustVerticals) {
    for (const plugin of verticals) {
      progress(`Starting ${plugin.manifest.title}`);
      await startVertical(plugin).catch(error => failed.push({ plugin: plugin.manifest.id, reason: reasonOf(error) }));
    }
    watchForVerticals(verticalStack, options, { known: found, failed, start: async plugin => { await stores.ensureService(plugin.manifest.id); await startVertical(plugin); } });
  }
  for (const { plugin, reason } of failed) progress(`! ${plugin} is not running: ${reason}`);

  const firstStart = firstPassword ? { email: options.environment['PLATFORM_AUTH_BOOTSTRAP_EMAIL'] ?? `admin@ops.sys.${domain}`, password: firstPassword } : undefined;
  // It is in the identity service now, hashed; the file must not outlive the one time it is shown.
  if (firstPassword) rmSync(join(dataDir, 'keys', BOOTSTRAP_PASSWORD), { force: true });
  const origin = (label: string) => publicOrigin(platformHost(label, domain), options.edgePort);
  return {
    main,
    failed,
    firstStart,
    ready: { console: origin('console'), auth: origin('auth'), gateway: origin('bff.console'), issuer: origin('auth'), data_dir: dataDir, pid: process.pid, ca_root: join(dataDir, 'ca', 'classical', 'root.crt'), build, plugins: [...platform, ...verticals].map(({ manifest }) => manifest.id).filter(id => !failed.some(({ plugin }) => plugin === id)) },
  };
}

/** Port 0 is settled before anything is told an origin: every URL carries the real one. */
async function withEdgePort(options: HostOptions): Promise<HostOptions> {
  const edgePort = options.edgePort === 0 ? await freePort() : options.edgePort;
  return { ...options, edgePort, environment: { ...options.environment, PLATFORM_PROXY_HTTPS_PORT: String(edgePort) } };
}

/** Reads and checks every plugin found. A broken platform plugin stops the boot; a broken vertical fails alone (G-K-21). */
async function readAll(options: HostOptions, failed: Host['failed']): Promise<FoundPlugin[]> {
  const catalog = JSON.parse(readFileSync(join(ROOT, 'catalog', 'platform.json'), 'utf8')) as { services: { package: string }[] };
  const found: FoundPlugin[] = [];
  for (const { package: name } of catalog.services) found.push(await readPlugin(join(ROOT, 'plugins', name)));
  const known = new Map<string, Manifest>(found.map(({ manifest }) => [manifest.id, manifest]));
  for (const { manifest } of found) refuseFindings(manifest, known);
  for (const directory of findPlugins(options.pluginDirs)) {
    const plugin = await readVertical(directory, known, failed);
    if (plugin) {
      found.push(plugin);
      known.set(plugin.manifest.id, plugin.manifest);
    }
  }
  return found;
}

async function readVertical(directory: string, known: ReadonlyMap<string, Manifest>, failed: Host['failed']): Promise<FoundPlugin | undefined> {
  try {
    const plugin = await readPlugin(directory);
    refuseFindings(plugin.manifest, known);
    if (plugin.manifest.vertical === 'platform') throw new Error("E006 a plugin from outside cannot belong to 'platform'   Set `vertical` to your own name.");
    return plugin;
  } catch (error) {
    failed.push({ plugin: directory, reason: reasonOf(error) });
    return undefined;
  }
}

function refuseFindings(manifest: Manifest, known: ReadonlyMap<string, Manifest>): void {
  const errors = checkManifest(manifest, known).filter(({ id }) => id.startsWith('E'));
  if (errors.length > 0) throw new Error(errors.map(formatFinding).join('\n'));
}

function readConfigs(found: readonly FoundPlugin[], environment: Readonly<Record<string, string | undefined>>): Map<string, Readonly<Record<string, unknown>>> {
  const faults: ConfigFault[] = [];
  const configs = new Map<string, Readonly<Record<string, unknown>>>();
  for (const { manifest } of found) {
    const read = readConfig(manifest.config, environment);
    faults.push(...(manifest.vertical === 'platform' ? read.faults : []));
    configs.set(manifest.id, read.config);
  }
  if (faults.length > 0) throw new ConfigError(formatFaults(faults));
  return configs;
}

async function importAll(found: readonly FoundPlugin[], configs: ReadonlyMap<string, Readonly<Record<string, unknown>>>, failed: Host['failed']): Promise<LoadedService[]> {
  const services: LoadedService[] = [];
  for (const plugin of found) {
    try {
      services.push({ plugin: await importPlugin(plugin), manifest: plugin.manifest, config: configs.get(plugin.manifest.id) ?? {} });
    } catch (error) {
      if (plugin.manifest.vertical === 'platform') throw error;
      failed.push({ plugin: plugin.manifest.id, reason: reasonOf(error) });
    }
  }
  return services;
}

async function startSplit(owned: DisposalStack, options: HostOptions, parts: { base: Bootstrap; found: readonly FoundPlugin[]; environment: Readonly<Record<string, string | undefined>>; stores: Stores }): Promise<void> {
  const { connectKeyValue } = await import('../storage/key-value.ts');
  const { keyValuePort } = await import('./key-value-port.ts');
  const { openLog } = await import('../telemetry/log.ts');
  const store = owned.own(await connectKeyValue(parts.base.keyValueUrl));
  const kv = owned.own(await keyValuePort(store));
  const telemetry = openLog({ level: options.logLevel, directory: join(options.dataDir, 'logs'), build: parts.base.build, pretty: options.pretty, process: 'host' });
  owned.defer(() => telemetry.flush());
  const tiers = [...new Set(parts.found.map(({ manifest }) => manifest.placement.tier))].sort((left, right) => left - right);
  for (const tier of tiers) {
    const members = parts.found.filter(({ manifest }) => manifest.placement.tier === tier);
    options.progress(`Starting ${members.map(({ manifest }) => manifest.title).join(', ')}`);
    await Promise.all(members.map(async ({ manifest, directory }) => {
      const child = owned.own(new ServiceProcess({
        name: manifest.id,
        pluginDirectory: directory,
        environment: parts.environment,
        settings: ['PLATFORM_'],
        log: telemetry.logger('host'),
        bootstrap: async () => ({ ...parts.base, enrollment: await enrollmentsOf(kv, manifest) }),
      }));
      await child.start();
    }));
  }
}

async function launchVertical(plugin: FoundPlugin, { base, options, environment, stores, host, siblings }: { base: Bootstrap; options: HostOptions; environment: Readonly<Record<string, string | undefined>>; stores: Stores; host: HostWorkload; siblings: readonly FoundPlugin[] }): Promise<ServiceProcess> {
  const { manifest } = plugin;
  await host.registerWorkload(manifest);
  const keyValueUrl = await stores.restrictedKeyValueUrl(manifest.id);
  const own = siblings.filter(sibling => sibling.manifest.vertical === manifest.vertical).map(sibling => sibling.manifest);
  const child = new ServiceProcess({
    name: manifest.id,
    pluginDirectory: plugin.directory,
    environment,
    settings: [`${manifest.vertical.toUpperCase()}_`],
    log: host.log,
    // Its data directory is its own: nothing of the platform's keys lies below it.
    bootstrap: async () => ({ ...base, dataDir: join(options.dataDir, 'verticals', manifest.id), keyValueUrl, manifests: [...base.manifests, ...(own.includes(manifest) ? own : [...own, manifest])], enrollment: await enrollmentsOf(host.kv, manifest) }),
  });
  await child.start();
  return child;
}

async function enrollmentsOf(kv: Parameters<typeof publishEnrollment>[0], { id, workloads }: Manifest): Promise<Record<string, string>> {
  const names = [id, ...Object.keys(workloads).map(name => `${id}-${name}`)];
  return Object.fromEntries(await Promise.all(names.map(async name => [name, await publishEnrollment(kv, name)] as const)));
}

/** New folders under `PLATFORM_PLUGIN_DIRS` come up without a restart. */
function watchForVerticals(owned: DisposalStack, options: HostOptions, { known, failed, start }: { known: readonly FoundPlugin[]; failed: Host['failed']; start: (plugin: FoundPlugin) => Promise<void> }): void {
  const seen = new Set([...known.map(({ directory }) => directory), ...failed.map(({ plugin }) => plugin)]);
  const manifests = new Map(known.map(({ manifest }) => [manifest.id, manifest]));
  let pending: Promise<void> = Promise.resolve();
  const look = async () => {
    for (const directory of findPlugins(options.pluginDirs)) {
      if (seen.has(directory)) continue;
      seen.add(directory);
      const plugin = await readVertical(directory, manifests, failed);
      if (!plugin) continue;
      manifests.set(plugin.manifest.id, plugin.manifest);
      await start(plugin).catch(error => failed.push({ plugin: plugin.manifest.id, reason: reasonOf(error) }));
    }
  };
  for (const directory of options.pluginDirs) {
    if (!existsSync(directory)) continue;
    const watcher = watch(directory, () => {
      pending = pending.then(look, look);
    });
    owned.defer(async () => {
      watcher.close();
      await pending.catch(() => undefined);
    });
  }
}

/** Written before the identity service first starts, and only when it never did: a later start finds the administrator there. */
function prepareBootstrapPassword(dataDir: string): string | undefined {
  const path = join(dataDir, 'keys', BOOTSTRAP_PASSWORD);
  const marker = join(dataDir, 'keys', 'bootstrap.done');
  if (existsSync(path)) return readFileSync(path, 'utf8');
  if (existsSync(marker)) return undefined;
  const password = randomBytes(18).toString('base64url');
  writeDurably(path, password);
  writeDurably(marker, new Date().toISOString());
  return password;
}

/** Development gets keys of its own, kept in files; production must name real ones (house 17). */
function defaultKeys({ dataDir, production, environment }: HostOptions): Record<string, string> {
  if (production) return {};
  const keyOf = (name: string) => {
    const path = join(dataDir, 'keys', name);
    if (!existsSync(path)) writeDurably(path, randomBytes(32).toString('base64'));
    return path;
  };
  return {
    ...(environment['PLATFORM_BFF_ENCRYPTION_KEY'] ? {} : { PLATFORM_BFF_ENCRYPTION_KEY: readFileSync(keyOf('bff.key'), 'utf8') }),
    ...(environment['PLATFORM_AUTH_KEY_ENCRYPTION_REF'] ? {} : { PLATFORM_AUTH_KEY_ENCRYPTION_REF: `file://${keyOf('auth.key')}` }),
  };
}

let knownBuild: string | undefined;
/** Which code runs: the commit where there is one, else a hash of the lock file. */
export function buildHash(): string {
  knownBuild ??= commitOf(join(ROOT, '.git')) ?? createHash('sha256').update(readFileSync(join(ROOT, 'package.json'))).digest('hex').slice(0, 12);
  return knownBuild;
}
function commitOf(git: string): string | undefined {
  try {
    const head = readFileSync(join(git, 'HEAD'), 'utf8').trim();
    const reference = head.startsWith('ref: ') ? head.slice(5) : undefined;
    return (reference ? readFileSync(join(git, reference), 'utf8') : head).trim().slice(0, 12);
  } catch {
    return undefined;
  }
}

const reasonOf = (error: unknown): string => {
  const messages: string[] = [];
  for (let at = error; at instanceof Error && messages.length < 5; at = at.cause) messages.push(at.message);
  return messages.join(': ') || String(error);
};
