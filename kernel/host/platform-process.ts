import { hostname } from 'node:os';
import type { AnyPlugin, Context, KeyValue, ProcessHost } from '@platform/sdk';
import { type Clock, systemClock } from '../base/clock.ts';
import { DisposalStack } from '../base/disposal-stack.ts';
import { newId } from '../base/ids.ts';
import type { Manifest } from '../base/manifest.ts';
import { InternalListener } from '../http/internal-listener.ts';
import type { Authority } from '../identity/certificates/trust-anchors.ts';
import { type CredentialKind, Workload } from '../identity/workload.ts';
import { EventConsumer } from '../outbox/consumption/event-consumer.ts';
import type { Relay } from '../outbox/relay/relay.ts';
import type { Directory } from '../routing/directory.ts';
import type { LocalService, ServiceCaller } from '../routing/service-caller.ts';
import { connectKeyValue } from '../storage/key-value.ts';
import { PostgresPool } from '../storage/postgres/postgres-pool.ts';
import { openLog, type Telemetry } from '../telemetry/log.ts';
import { type Bootstrap, LOOPBACK, platformHost, publicOrigin } from './boot/bootstrap.ts';
import { openOtlp } from '../telemetry/otlp/open-otlp.ts';
import { consumerBus, policyPort, registerVertical } from './platform-calls.ts';
import { keyValuePort } from './service/key-value-port.ts';
import { tolerateAbsence } from './machine/tolerate-absence.ts';
import { instanceRow } from './machine/instance-row.ts';
import type { KeySettings } from './keys/key-settings.ts';
import { mintFor } from './machine/mint.ts';
import { poolOptions } from './boot/pool-options.ts';
import { ServiceAlerts } from './process/service-alerts.ts';
import { signingAuthority } from './service/signing-authority.ts';
import { ServiceInstance, type ServiceInstanceParts } from './service/service-instance.ts';
import { PARTS, wire } from './boot/wiring.ts';

export interface LoadedService {
  /** Its code; or how to load it, once this process has its keys. */
  readonly plugin: AnyPlugin | (() => Promise<AnyPlugin>);
  readonly manifest: Manifest;
  readonly config: Readonly<Record<string, unknown>>;
  /** None where no setting says anything of its keys. */
  readonly keys?: KeySettings;
}
export interface PlatformProcessOptions {
  readonly bootstrap: Bootstrap;
  readonly services: readonly LoadedService[];
  /** Only in the process that holds the certificate authority's files. */
  readonly authority?: Authority;
  /** Only in the process that starts the others. */
  readonly processes?: ProcessHost;
  readonly clock?: Clock;
  readonly processName: string;
  readonly pretty?: boolean;
  readonly environment?: Readonly<Record<string, string | undefined>>;
  /** Called when the process has its certificates, before code of a plugin is loaded that is loaded late. */
  readonly identified?: () => unknown;
  readonly failedPlugins?: () => readonly { plugin: string; reason: string }[];
  readonly progress?: (text: string) => void;
  readonly seen?: (service: string) => NonNullable<ServiceInstanceParts['seen']>;
  /** Services answered inside this process by something else: the test kit's stubs. */
  readonly locals?: ReadonlyMap<string, LocalService>;
  /** Keys to verify tokens with, instead of the identity service's. */
  readonly jwks?: () => Promise<{ keys: JsonWebKey[] }>;
  /** Whose sign-in host an issuer is, instead of the identity service's word. */
  readonly issuers?: (issuer: string) => Promise<string | undefined>;
}

interface ProcessParts {
  readonly owned: DisposalStack;
  readonly telemetry: Telemetry;
  readonly port: number;
  readonly caller: ServiceCaller;
  readonly kv: KeyValue;
  readonly directory: Directory;
  readonly relay: Relay;
  readonly options: PlatformProcessOptions;
}

const DRAIN_MS = 30_000;
const RENEWAL_CHECK_MS = 3_600_000;

/**
 * The services of one process: everything loads and migrates before anything starts, tiers start in order, in parallel inside a tier;
 * a failed start takes down what had come up. Drain all, then stop in reverse (house 11).
 */
export class PlatformProcess implements AsyncDisposable {
  readonly instances = new Map<string, ServiceInstance>();
  readonly telemetry: Telemetry;
  readonly port: number;
  readonly caller: ServiceCaller;
  readonly kv: KeyValue;
  readonly #owned: DisposalStack;
  readonly #directory: Directory;
  readonly #relay: Relay;
  readonly #options: PlatformProcessOptions;

  private constructor(parts: ProcessParts) {
    this.#owned = parts.owned;
    this.telemetry = parts.telemetry;
    this.port = parts.port;
    this.caller = parts.caller;
    this.kv = parts.kv;
    this.#directory = parts.directory;
    this.#relay = parts.relay;
    this.#options = parts.options;
  }

  static async start(options: PlatformProcessOptions): Promise<PlatformProcess> {
    const owned = new DisposalStack();
    try {
      return await startIn(owned, options);
    } catch (error) {
      await owned[Symbol.asyncDispose]().catch(() => undefined);
      throw error;
    }
  }

  /** @internal */
  static of(parts: ProcessParts): PlatformProcess {
    return new PlatformProcess(parts);
  }

  /** Readiness off, in-flight work finished, outboxes emptied, at most thirty seconds (G-K-22). */
  async drain(): Promise<void> {
    await Promise.all([...this.instances.keys()].map(service => this.#directory.setStatus(service, 'Inactive').catch(() => undefined)));
    await this.#relay.drain(2_000).catch(() => undefined);
    await Promise.all([...this.instances.values()].map(instance => instance.drain(DRAIN_MS)));
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#owned[Symbol.asyncDispose]();
    this.#options.progress?.('Stopped');
  }
}

async function startIn(owned: DisposalStack, options: PlatformProcessOptions): Promise<PlatformProcess> {
  const { bootstrap, authority, progress = () => undefined, clock = systemClock } = options;
  const { domain, anchors, pqMode, dataDir, build } = bootstrap;
  const telemetry = openLog({
    level: bootstrap.logLevel,
    directory: `${dataDir}/logs`,
    build,
    pretty: options.pretty ?? false,
    process: options.processName,
  });
  owned.defer(() => telemetry.flush());
  const log = telemetry.logger('kernel');
  owned.own(tolerateAbsence(log));
  const otlp = await openOtlp(options.environment ?? process.env, { process: options.processName, build, log, clock });
  if (otlp) owned.own(otlp);
  const instanceId = `${hostname()}-${process.pid}-${newId().slice(-6)}`.replaceAll(/[^a-zA-Z0-9._-]/g, '-').slice(0, 40);

  const store = owned.own(await connectKeyValue(bootstrap.keyValueUrl));
  const kv = owned.own(await keyValuePort(store));
  const workloads = new Map<string, Workload>();
  const wired = wire({
    bootstrap,
    clock,
    log,
    kv,
    workloads,
    environment: options.environment ?? process.env,
    locals: options.locals ?? new Map(),
    jwks: options.jwks,
    issuers: options.issuers,
  });
  const directory = wired.resolve(PARTS.directory);
  await directory.start();
  const revoked = owned.own(wired.resolve(PARTS.revoked));
  await revoked.start();
  const pools = owned.own(wired.resolve(PARTS.pools));
  owned.own(directory);

  progress('Preparing identities');
  const mint = mintFor({ bootstrap, directory, ...(authority ? { authority } : {}) });
  const open = (name: string, service: string, extra: readonly string[], kinds: readonly CredentialKind[]) =>
    Workload.open({
      name,
      directory: `${dataDir}/keys`,
      anchors,
      pqMode,
      kinds,
      mint,
      hostnames: [service, ...extra].map(label => platformHost(label, domain)),
    });
  for (const { manifest } of options.services) {
    workloads.set(manifest.id, await open(manifest.id, manifest.id, manifest.hosts, ['client', 'database', 'listener']));
    for (const name of Object.keys(manifest.workloads))
      workloads.set(`${manifest.id}-${name}`, await open(`${manifest.id}-${name}`, manifest.id, [], ['client']));
  }
  owned.own(
    clock.every(RENEWAL_CHECK_MS, async () => {
      for (const workload of workloads.values())
        await workload
          .renewDue(Date.now())
          .catch(error => log.error({ workload: workload.name, err: error }, 'certificate renewal failed; the old one stays'));
    }),
  );
  // A listener whose certificate was revoked shows another one: its own identity still stands.
  const renewed = revoked.onRevoked(() => {
    for (const workload of workloads.values())
      void workload
        .renewListener(thumbprint => revoked.has(thumbprint))
        .catch(error => log.error({ workload: workload.name, err: error }, 'a revoked listener certificate could not be replaced'));
  });
  owned.own(renewed);
  options.identified?.();
  const services = await Promise.all(
    options.services.map(async service => ({
      ...service,
      plugin: typeof service.plugin === 'function' ? await service.plugin() : service.plugin,
    })),
  );
  const first = workloads.get(services[0]?.manifest.id ?? '');
  if (!first) throw new Error('a process without services has nothing to run');
  const [caller, verifier, identity, platformGrants, secrets] = [
    wired.resolve(PARTS.caller),
    wired.resolve(PARTS.verifier),
    wired.resolve(PARTS.identity),
    wired.resolve(PARTS.grants),
    wired.resolve(PARTS.secrets),
  ];
  const environments = wired.resolve(PARTS.environments);
  const relay = owned.own(wired.resolve(PARTS.relay));
  const bus = (workload: Workload) => consumerBus(caller, workload);

  const ip = bootstrap.ip ?? LOOPBACK;
  const platform: Context<never>['platform'] = {
    domain,
    build,
    dataDir,
    production: bootstrap.production,
    ip,
    publicOrigin: host => publicOrigin(host, bootstrap.edgePort),
    newId,
  };
  const alerts = new ServiceAlerts(kv, log);
  const instances = new Map<string, ServiceInstance>();
  for (const { plugin, manifest, config, keys = {} } of services) {
    const workload = workloads.get(manifest.id) as Workload;
    const pool = new PostgresPool(poolOptions(bootstrap, manifest.id, workload));
    owned.defer(() => pool.close());
    const instance = new ServiceInstance({
      plugin,
      manifest,
      config,
      log: telemetry.logger(manifest.id),
      pool,
      clock,
      kv,
      authority: manifest.capabilities.includes('authority') && authority ? signingAuthority(authority) : undefined,
      listeners: bootstrap.listeners ?? {},
      processes: manifest.capabilities.includes('processes') ? options.processes : undefined,
      caller,
      pools,
      workload,
      workloadOf: name => {
        const found = workloads.get(name === undefined ? manifest.id : `${manifest.id}-${name.replace(`${manifest.id}-`, '')}`);
        if (!found) throw new Error(`${manifest.id} declares no workload ${name}`);
        return found;
      },
      verifier,
      tokens: wired.resolve(PARTS.tokens),
      secrets,
      keySettings: keys,
      relay,
      bus: bus(workload),
      policy: policyPort(caller, workload),
      environments,
      scopesOf: async ({ kind, id }, envId) =>
        kind === 'user'
          ? new Set(await identity.personScopes(id, envId))
          : (platformGrants(id)?.scopes ?? new Set((await identity.workload(id))?.scopes ?? [])),
      workloadScopes: platformGrants,
      manifests: () => bootstrap.manifests,
      platform,
      instance: instanceId,
      build,
      failedPlugins: async () => [
        ...(options.failedPlugins?.() ?? []),
        ...(await alerts.raised()).map(({ service_type, restarts, reason }) => ({
          plugin: service_type,
          reason: `given up after ${restarts} restarts: ${reason}`,
        })),
      ],
      ...(options.seen ? { seen: options.seen(manifest.id) } : {}),
    });
    if (otlp) instance.measured(otlp);
    instances.set(manifest.id, instance);
    owned.own(instance);
  }

  progress('Migrating');
  await Promise.all(
    [...instances].map(([id, instance]) =>
      instance.migrate().catch(cause => {
        throw new Error(`${id} failed to migrate`, { cause });
      }),
    ),
  );
  for (const [id, instance] of instances)
    await instance.setUp().catch(cause => {
      throw new Error(`${id} failed to set up`, { cause });
    });

  const listener = new InternalListener({
    log,
    pqMode,
    contextFor: name => (name ? (workloads.get(labelOf(name, domain, bootstrap.manifests)) ?? first) : first).listenerContext(),
    clientRoot: anchors.pq.root,
    key: first.credential('listener').key,
    cert: first.credential('listener').chain,
    platformHost: label => platformHost(label, domain),
    revoked,
  });
  for (const instance of instances.values()) listener.mount(instance.app);
  const port = await listener.listen(ip, bootstrap.port);
  owned.own(listener);

  const stopping = new AbortController();
  owned.defer(() => stopping.abort());
  const tiers = [...new Set(services.map(({ manifest }) => manifest.placement.tier))].sort((left, right) => left - right);
  for (const tier of tiers) {
    const members = services.filter(({ manifest }) => manifest.placement.tier === tier);
    progress(`Starting ${members.map(({ manifest }) => manifest.title).join(', ')}`);
    await Promise.all(
      members.map(async ({ manifest }) => {
        const instance = instances.get(manifest.id) as ServiceInstance;
        await instance.start(stopping.signal).catch(cause => {
          throw new Error(`${manifest.id} failed to start`, { cause });
        });
        await directory.register(instanceRow(manifest, { ...bootstrap, port }, `${dataDir}/logs/${options.processName}.log`));
      }),
    );
  }

  owned.own(
    new EventConsumer({
      // A service may hear of policies as a workload that can do nothing else (SUP-065).
      bus: bus(workloads.get(`${first.name}-policy`) ?? first),
      log,
      service: first.name,
      name: 'policy',
      family: 'policy',
      event: '*',
      delivery: 'process',
      instance: instanceId,
      clock,
      handle: async ({ env_id, event_type, payload }) => {
        // The family is open to any vertical; only the platform's own word changes policies.
        if (!/^platform:[a-z0-9]+:policy:updated$/.test(event_type)) return;
        for (const instance of instances.values()) await instance.policyChanged(env_id, (payload as { service?: string }).service ?? '*');
      },
    }),
  );
  registerVertical({
    caller,
    services: services.map(({ manifest }) => manifest),
    manifests: bootstrap.manifests,
    workloadOf: id => workloads.get(id) as Workload,
    log,
    signal: stopping.signal,
  });

  const made = PlatformProcess.of({ owned, telemetry, port, caller, kv, directory, relay, options });
  for (const [id, instance] of instances) made.instances.set(id, instance);
  return made;
}

function labelOf(name: string, domain: string, manifests: readonly Manifest[]): string {
  const label = name.endsWith(`.ops.sys.${domain}`) ? name.slice(0, -`.ops.sys.${domain}`.length) : name;
  return manifests.find(({ id, hosts }) => id === label || hosts.includes(label))?.id ?? label;
}
