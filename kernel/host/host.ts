import { randomBytes } from 'node:crypto';
import { existsSync, mkdirSync, readFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { type LivingService, SYSTEM, platformHost, platformZone } from '@platform/sdk';
import { DisposalStack } from '../base/disposal-stack.ts';
import { writeDurably } from '../base/durable-file.ts';
import { openAuthority } from '../identity/certificates/trust-anchors.ts';
import { freePort } from '../storage/free-port.ts';
import { type Bootstrap, DEFAULT_POOL, publicOrigin } from './boot/bootstrap.ts';
import { buildHash } from './boot/build.ts';
import { requireConnections } from './boot/database/connection-budget.ts';
import { lockDataDir } from './machine/data-dir-lock.ts';
import { type Ground, joinGround, openGround } from './boot/ground.ts';
import { HostWorkload } from './machine/host-workload.ts';
import type { FoundPlugin } from './plugin/loader.ts';
import { PlatformProcess } from './platform-process.ts';
import type { LocalProcessHost } from './process/local-process-host.ts';
import { machineOf, verticalService } from './process/machine.ts';
import { PluginWatch } from './plugin/plugin-watch.ts';
import { type FailedPlugin, importAll, readAll, readAllSettings, refuseUnknownSettings } from './plugin/plugin-intake.ts';
import type { HostOptions } from './host-options.ts';

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

/** What is said once, at the first start. */
interface FirstStart {
  /** Of the administrator, who chooses another password. */
  readonly email: string;
  readonly password: string;
  readonly steps: readonly { readonly text: string; readonly url: string }[];
}

interface HostParts {
  readonly ready: ReadyLine;
  readonly firstStart: FirstStart | undefined;
  readonly failed: FailedPlugin[];
  readonly main: PlatformProcess;
  readonly machine: LocalProcessHost;
}

/** The whole platform on one machine: authority, stores, platform services, verticals. `stop` drains, then takes everything down. */
export class Host {
  readonly ready: ReadyLine;
  /** E-mail and one-time password of the administrator; only on the first start, shown once. */
  readonly firstStart: FirstStart | undefined;
  readonly failed: FailedPlugin[];
  readonly main: PlatformProcess;
  readonly #machine: LocalProcessHost;
  readonly #owned: DisposalStack;

  private constructor(parts: HostParts & { owned: DisposalStack }) {
    this.ready = parts.ready;
    this.firstStart = parts.firstStart;
    this.failed = parts.failed;
    this.main = parts.main;
    this.#machine = parts.machine;
    this.#owned = parts.owned;
  }

  /** `leave` is called when the supervisor was told to end the host (SUP-099). */
  static async start(asked: HostOptions, leave: () => void = () => undefined): Promise<Host> {
    const owned = new DisposalStack();
    try {
      // As root the database runs as another user, who must be able to pass through.
      mkdirSync(asked.dataDir, { recursive: true, mode: process.getuid?.() === 0 ? 0o711 : 0o700 });
      owned.own(lockDataDir(asked.dataDir));
      const options = await withEdgePort(asked);
      const parts = await bringUp(owned, options, leave);
      return new Host({ ...parts, owned });
    } catch (error) {
      await owned[Symbol.asyncDispose]().catch(() => undefined);
      throw error;
    }
  }

  /** The processes of others first, while what they use still answers; then everything of the platform drains, and only then stops. */
  async stop(): Promise<void> {
    await using _owned = this.#owned;
    await this.#machine.stop();
    await this.main.drain();
  }
}

async function bringUp(owned: DisposalStack, options: HostOptions, leave: () => void): Promise<HostParts> {
  const { dataDir, progress, domain } = options;
  const failed: FailedPlugin[] = [];
  if (!options.join) progress('Opening the certificate authority');
  const authority = options.join ? undefined : await openAuthority(dataDir, options.validity);
  // Every machine knows all services of the fleet, whichever of them it starts.
  const { platform, others, verticals } = await readAll({ ...options, services: options.join?.fleet_services ?? options.services }, failed);
  refuseUnknownSettings(options.shipped ?? {}, [...platform, ...others]);
  const firstPassword = options.join ? undefined : prepareBootstrapPassword(dataDir);
  const environment = {
    PLATFORM_AUTH_BOOTSTRAP_PASSWORD_REF: `file://${join(dataDir, 'keys', BOOTSTRAP_PASSWORD)}`,
    ...options.environment,
  };
  const settings = readAllSettings([...platform, ...verticals], { environment, production: options.production });
  // After everything that can be refused without them: what a refused start opened would have to be closed again.
  const ground = authority ? await openGround(owned, options, authority) : await joinGround(owned, options);
  const { stores } = ground;

  const available = await stores.connections();
  const pool = options.databasePool ?? DEFAULT_POOL;
  if (available !== undefined) requireConnections({ services: platform.length + verticals.length, pool, available });

  const inside = insideOf(options, { platform, verticals });
  const base = bootstrapOf(options, { ground, platform, inside });
  progress('Preparing databases');
  for (const { manifest } of [...platform, ...verticals]) await stores.ensureService(manifest.id);

  const host = owned.own(await HostWorkload.open({ bootstrap: base, authority, log: undefined }));
  const machine = owned.own(machineOf(options, { base, platform, others, verticals, inside, environment, stores, host, leave }));
  const services = await importAll(inside, settings, failed);
  const main = await PlatformProcess.start({
    bootstrap: { ...base, manifests: [...new Set([...platform, ...inside])].map(({ manifest }) => manifest) },
    services,
    ...(authority ? { authority } : {}),
    processes: machine,
    processName: options.split ? 'host' : 'platform',
    pretty: options.pretty,
    environment,
    failedPlugins: () => failed,
    progress,
  });
  owned.own(main);
  const isTakenOut = ({ life }: LivingService) => life === 'draining' || life === 'gone';
  owned.own(host.followServices(services => machine.withdraw(new Set(services.filter(isTakenOut).map(({ service }) => service)))));
  await machine.boot(progress);
  if (!options.trustVerticals) {
    const start = async (plugin: FoundPlugin) => machine.add(verticalService(plugin));
    owned.own(
      new PluginWatch({ directories: options.pluginDirs, known: [...platform, ...verticals], failed, start, log: host.log, progress }),
    );
  }
  for (const { plugin, reason } of failed) progress(`! ${plugin} is not running: ${reason}`);

  // It is in the identity service now, hashed; the file must not outlive the one time it is shown.
  if (firstPassword) rmSync(join(dataDir, 'keys', BOOTSTRAP_PASSWORD), { force: true });
  const plugins = [...platform, ...verticals].map(({ manifest }) => manifest.id).filter(id => !failed.some(({ plugin }) => plugin === id));
  const ready = readyLine(options, base.build, plugins);
  const email = options.environment['PLATFORM_AUTH_BOOTSTRAP_EMAIL'] ?? `admin@${platformZone(domain)}`;
  const firstStart =
    firstPassword === undefined
      ? undefined
      : { email, password: firstPassword, steps: options.production ? [] : firstSteps(platform, ready) };
  return { main, machine, failed, firstStart, ready };
}

/** What every process of the machine is started with. */
function bootstrapOf(
  options: HostOptions,
  { ground, platform, inside }: { ground: Ground; platform: readonly FoundPlugin[]; inside: readonly FoundPlugin[] },
): Bootstrap {
  const { domain, ip, production, dataDir, logLevel, edgePort, pqMode, orphanMs, backends, databasePool } = options;
  const { anchors, stores, enrollment } = ground;
  return {
    domain,
    ip,
    production,
    dataDir,
    home: dataDir,
    build: buildHash(),
    logLevel,
    edgePort,
    pqMode,
    anchors,
    database: { ...stores.database, ...(databasePool === undefined ? {} : { pool: databasePool }) },
    keyValueUrl: stores.keyValueUrl,
    orphanMs,
    ...(backends ? { backends } : {}),
    manifests: platform.map(({ manifest }) => manifest),
    enrollment: enrollment(workloadNames(inside)),
  };
}

const workloadNames = (plugins: readonly FoundPlugin[]): string[] =>
  plugins.flatMap(({ manifest: { id, workloads } }) => [id, ...Object.keys(workloads).map(name => `${id}-${name}`)]);

/** What runs in the host's own process: all of the platform, or with a process for each service only who watches over them. */
function insideOf(
  { split, join, trustVerticals }: HostOptions,
  { platform, verticals }: { platform: readonly FoundPlugin[]; verticals: readonly FoundPlugin[] },
): readonly FoundPlugin[] {
  const ours = split || join ? platform.filter(({ manifest }) => manifest.capabilities.includes('processes')) : platform;
  return trustVerticals && !split ? [...ours, ...verticals] : ours;
}

function firstSteps(platform: readonly FoundPlugin[], { console }: ReadyLine): FirstStart['steps'] {
  return platform.flatMap(({ manifest: { id, firstSteps: step } }) =>
    step ? [{ text: step.text, url: `${console}/#/${id}/${step.page}?env=${SYSTEM.envId}` }] : [],
  );
}

function readyLine({ domain, edgePort, dataDir }: HostOptions, build: string, plugins: readonly string[]): ReadyLine {
  const origin = (label: string) => publicOrigin(platformHost(label, domain), edgePort);
  return {
    console: origin('console'),
    auth: origin('auth'),
    gateway: origin('bff.console'),
    issuer: origin('auth'),
    data_dir: dataDir,
    pid: process.pid,
    ca_root: join(dataDir, 'ca', 'classical', 'root.crt'),
    build,
    plugins,
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
