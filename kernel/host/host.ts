import { randomBytes } from 'node:crypto';
import { existsSync, mkdirSync, readFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { DisposalStack } from '../base/disposal-stack.ts';
import { writeDurably } from '../base/durable-file.ts';
import type { PqMode } from '../identity/tls.ts';
import { anchorsOf, openAuthority } from '../identity/trust-anchors.ts';
import type { BackendLimits } from '../routing/connection-pool.ts';
import { freePort } from '../storage/free-port.ts';
import { type Bootstrap, platformHost, publicOrigin } from './bootstrap.ts';
import { buildHash } from './build.ts';
import { lockDataDir } from './data-dir-lock.ts';
import { HostWorkload } from './host-workload.ts';
import type { FoundPlugin } from './loader.ts';
import { PlatformProcess } from './platform-process.ts';
import type { SupervisedProcess } from './process/supervised-process.ts';
import { PluginWatch } from './plugin/plugin-watch.ts';
import { type FailedPlugin, importAll, readAll, readAllSettings } from './plugin-intake.ts';
import { reasonOf } from './reason.ts';
import { startSplit, stopAll, verticalProcess } from './service-fleet.ts';
import { openStores } from './stores.ts';

export interface HostOptions {
  readonly domain: string;
  readonly production: boolean;
  readonly dataDir: string;
  readonly edgePort: number;
  readonly logLevel: string;
  readonly pqMode: PqMode;
  /** Days of the authority's certificates, when they are made; the usual ones where nothing is said. */
  readonly validity?: { readonly rootDays: number; readonly intermediateDays: number };
  /** Pace of attempts to start a service that was given up on; 0 makes none. */
  readonly lastResortMs: number;
  readonly databaseUrl: string | undefined;
  readonly keyValueUrl: string | undefined;
  readonly backends?: BackendLimits;
  readonly pluginDirs: readonly string[];
  /** Platform services to run, by id; those of the distribution. */
  readonly services: readonly string[];
  /** One process per service instead of one for all. */
  readonly split: boolean;
  /** Runs verticals in the host process; development only. */
  readonly trustVerticals: boolean;
  readonly environment: Readonly<Record<string, string | undefined>>;
  readonly pretty: boolean;
  readonly preferKeyValue?: 'wasm' | 'path';
  readonly progress: (text: string) => void;
}

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
  readonly failed: FailedPlugin[];
  readonly main: PlatformProcess | undefined;
  readonly #owned: DisposalStack;
  readonly #verticals: DisposalStack;

  private constructor(parts: { ready: ReadyLine; firstStart: Host['firstStart']; failed: FailedPlugin[]; main: PlatformProcess | undefined; owned: DisposalStack; verticals: DisposalStack }) {
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
      // As root the database runs as another user, who must be able to pass through.
      mkdirSync(asked.dataDir, { recursive: true, mode: process.getuid?.() === 0 ? 0o711 : 0o700 });
      owned.own(lockDataDir(asked.dataDir));
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

async function bringUp(
  owned: DisposalStack,
  verticalStack: DisposalStack,
  options: HostOptions,
): Promise<{ ready: ReadyLine; firstStart: Host['firstStart']; failed: FailedPlugin[]; main: PlatformProcess | undefined }> {
  const { dataDir, progress, domain } = options;
  const failed: FailedPlugin[] = [];
  progress('Opening the certificate authority');
  const authority = await openAuthority(dataDir, options.validity);
  const found = await readAll(options, failed);
  const platform = found.filter(({ manifest }) => manifest.vertical === 'platform');
  const verticals = found.filter(({ manifest }) => manifest.vertical !== 'platform');
  const firstPassword = prepareBootstrapPassword(dataDir);
  const environment = { PLATFORM_AUTH_BOOTSTRAP_PASSWORD_REF: `file://${join(dataDir, 'keys', BOOTSTRAP_PASSWORD)}`, ...options.environment };
  const settings = readAllSettings(found, { environment, production: options.production });
  // After everything that can be refused without them: what a refused start opened would have to be closed again.
  const stores = await openStores(owned, { ...options, authority });

  const build = buildHash();
  const manifests = platform.map(({ manifest }) => manifest);
  const base: Bootstrap = {
    domain,
    production: options.production,
    dataDir,
    build,
    logLevel: options.logLevel,
    edgePort: options.edgePort,
    pqMode: options.pqMode,
    anchors: anchorsOf(authority),
    database: stores.database,
    keyValueUrl: stores.keyValueUrl,
    ...(options.backends ? { backends: options.backends } : {}),
    manifests,
    enrollment: {},
  };
  progress('Preparing databases');
  for (const { manifest } of found) await stores.ensureService(manifest.id);

  const running = new Map<string, SupervisedProcess>();
  verticalStack.defer(() => stopAll(running.values()));
  let main: PlatformProcess | undefined;
  if (options.split) await startSplit(owned, options, { base, found: platform, environment, stores });
  else {
    const trusted = options.trustVerticals ? found : platform;
    const services = await importAll(trusted, settings, failed);
    main = await PlatformProcess.start({
      bootstrap: { ...base, manifests: trusted.map(({ manifest }) => manifest) },
      services,
      authority,
      processName: 'platform',
      pretty: options.pretty,
      environment,
      failedPlugins: () => failed.filter(({ plugin }) => running.get(plugin)?.life.phase !== 'running'),
      progress,
    });
    owned.own(main);
  }
  const host = owned.own(await HostWorkload.open({ bootstrap: base, authority, log: main?.telemetry }));
  const startVertical = async (plugin: FoundPlugin) => {
    if (running.has(plugin.manifest.id)) return;
    const process = verticalProcess(plugin, { base, options, environment, stores, host, siblings: verticals });
    running.set(plugin.manifest.id, process);
    await process.start();
  };
  if (!options.trustVerticals) {
    for (const plugin of verticals) {
      progress(`Starting ${plugin.manifest.title}`);
      await startVertical(plugin).catch(error => failed.push({ plugin: plugin.manifest.id, reason: reasonOf(error) }));
    }
    verticalStack.own(new PluginWatch({ directories: options.pluginDirs, known: found, failed, start: startVertical, log: host.log, progress }));
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
    ready: {
      console: origin('console'),
      auth: origin('auth'),
      gateway: origin('bff.console'),
      issuer: origin('auth'),
      data_dir: dataDir,
      pid: process.pid,
      ca_root: join(dataDir, 'ca', 'classical', 'root.crt'),
      build,
      plugins: [...platform, ...verticals].map(({ manifest }) => manifest.id).filter(id => !failed.some(({ plugin }) => plugin === id)),
    },
  };
}

/** Port 0 is settled before anything is told an origin: every URL carries the real one. */
async function withEdgePort(options: HostOptions): Promise<HostOptions> {
  const edgePort = options.edgePort === 0 ? await freePort() : options.edgePort;
  return { ...options, edgePort, environment: { ...options.environment, PLATFORM_PROXY_HTTPS_PORT: String(edgePort) } };
}

/** Written before the identity service first starts, and only when it never did: a later start finds the administrator there. */
function prepareBootstrapPassword(dataDir: string): string | undefined {
  const path = join(dataDir, 'keys', BOOTSTRAP_PASSWORD);
  const marker = join(dataDir, 'keys', 'bootstrap.done');
  if (existsSync(path)) return readFileSync(path, 'utf8');
  // The marker lost with its folder is no reason to promise an account that is there already.
  if (existsSync(marker) || existsSync(join(dataDir, 'pg'))) return undefined;
  const password = randomBytes(18).toString('base64url');
  writeDurably(path, password);
  writeDurably(marker, new Date().toISOString());
  return password;
}
