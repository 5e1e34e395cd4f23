import { hostname } from 'node:os';
import { type KeyValue, type Logger, platformHost } from '@platform/sdk';
import { type Clock, systemClock } from '../base/clock.ts';
import { DisposalStack } from '../base/disposal-stack.ts';
import { newId } from '../base/ids.ts';
import type { Manifest } from '../base/manifest.ts';
import { InternalListener } from '../http/internal-listener.ts';
import type { RevokedCertificates } from '../identity/certificates/revoked-certificates.ts';
import type { Verifier } from '../identity/tokens/verifier.ts';
import type { Workload } from '../identity/workload.ts';
import type { Relay } from '../outbox/relay/relay.ts';
import type { Directory } from '../routing/directory.ts';
import type { ServiceCaller } from '../routing/service-caller.ts';
import { connectKeyValue } from '../storage/key-value.ts';
import { openLog, type Telemetry } from '../telemetry/log.ts';
import { openOtlp } from '../telemetry/otlp/open-otlp.ts';
import { type Bootstrap, LOOPBACK } from './boot/bootstrap.ts';
import { PARTS, wire } from './boot/wiring.ts';
import { instanceRow } from './machine/instance-row.ts';
import { mintFor } from './machine/enrollment/mint.ts';
import { tolerateAbsence } from './machine/tolerate-absence.ts';
import { consumerBus, registerVertical } from './platform-calls.ts';
import { policyReload } from './policy/policy-reload.ts';
import { type OpenedService, ServiceAssembly } from './service-assembly.ts';
import { keyValuePort } from './service/key-value-port.ts';
import type { ServiceInstance } from './service/service-instance.ts';
import type { LoadedService, PlatformProcessOptions } from './platform-process-options.ts';
import { WorkloadSet } from './workload-set.ts';

interface ProcessParts {
  readonly owned: DisposalStack;
  readonly telemetry: Telemetry;
  readonly port: number;
  readonly caller: ServiceCaller;
  readonly verifier: Verifier;
  readonly kv: KeyValue;
  readonly directory: Directory;
  readonly relay: Relay;
  readonly options: PlatformProcessOptions;
}

const DRAIN_MS = 30_000;

/**
 * The services of one process: everything loads and migrates before anything starts, tiers start in order, in parallel inside a tier;
 * a failed start takes down what had come up. Drain all, then stop in reverse (house 11).
 */
export class PlatformProcess implements AsyncDisposable {
  readonly instances = new Map<string, ServiceInstance>();
  readonly telemetry: Telemetry;
  readonly port: number;
  readonly caller: ServiceCaller;
  readonly verifier: Verifier;
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
    this.verifier = parts.verifier;
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
  const { bootstrap, authority, progress = () => undefined, clock = systemClock, environment = process.env } = options;
  const { dataDir } = bootstrap;
  const { telemetry, log, otlp } = await openTelemetry(owned, options);
  const instance = `${hostname()}-${process.pid}-${newId().slice(-6)}`.replaceAll(/[^a-zA-Z0-9._-]/g, '-').slice(0, 40);

  const store = owned.own(await connectKeyValue(bootstrap.keyValueUrl));
  const kv = owned.own(await keyValuePort(store));
  const workloads = new WorkloadSet(bootstrap);
  const { locals = new Map(), jwks, issuers } = options;
  const wired = wire({ bootstrap, clock, log, kv, workloads: workloads.byName, environment, locals, jwks, issuers });
  const directory = wired.resolve(PARTS.directory);
  await directory.start();
  const revoked = owned.own(wired.resolve(PARTS.revoked));
  await revoked.start();
  owned.own(wired.resolve(PARTS.pools));
  owned.own(directory);

  progress('Preparing identities');
  const manifests = options.services.map(({ manifest }) => manifest);
  await workloads.open(manifests, mintFor({ bootstrap, directory, ...(authority ? { authority } : {}) }));
  workloads.keepFresh({ owned, clock, revoked, log });
  options.identified?.();
  const services = await Promise.all(options.services.map(loaded));
  const first = workloads.byName.get(manifests[0]?.id ?? '');
  if (!first) throw new Error('a process without services has nothing to run');
  const relay = owned.own(wired.resolve(PARTS.relay));
  const { processes, seen, failedPlugins = () => [] } = options;
  const parts = {
    owned,
    bootstrap,
    wired,
    telemetry,
    clock,
    kv,
    instance,
    workloads: workloads.byName,
    authority,
    processes,
    failedPlugins,
    seen,
  };
  const assembly = new ServiceAssembly(parts);
  const instances = new Map(services.map(service => [service.manifest.id, assembly.make(service)]));
  if (otlp) for (const made of instances.values()) made.measured(otlp);

  progress('Migrating');
  await Promise.all([...instances].map(([id, made]) => made.migrate().catch(failed(id, 'migrate'))));
  for (const [id, made] of instances) await made.setUp().catch(failed(id, 'set up'));

  const port = await listen(owned, { bootstrap, log, workloads, first, revoked, instances });
  const stopping = new AbortController();
  owned.defer(() => stopping.abort());
  const register = (manifest: Manifest) =>
    directory.register(instanceRow(manifest, { ...bootstrap, port }, `${dataDir}/logs/${options.processName}.log`));
  await startTiers(manifests, { instances, signal: stopping.signal, progress, register });

  const [caller, verifier] = [wired.resolve(PARTS.caller), wired.resolve(PARTS.verifier)];
  owned.own(hearPolicies({ caller, workloads, first, log, instance, clock, instances }));
  const workloadOf = (id: string) => workloads.byName.get(id) as Workload;
  registerVertical({ caller, services: manifests, manifests: bootstrap.manifests, workloadOf, log, signal: stopping.signal });

  const made = PlatformProcess.of({ owned, telemetry, port, caller, verifier, kv, directory, relay, options });
  for (const [id, each] of instances) made.instances.set(id, each);
  return made;
}

async function openTelemetry(owned: DisposalStack, options: PlatformProcessOptions) {
  const { bootstrap, processName, pretty = false, clock = systemClock, environment = process.env } = options;
  const { build, logLevel, dataDir } = bootstrap;
  const telemetry = openLog({ level: logLevel, directory: `${dataDir}/logs`, build, pretty, process: processName });
  owned.defer(() => telemetry.flush());
  const log = telemetry.logger('kernel');
  owned.own(tolerateAbsence(log));
  const otlp = await openOtlp(environment, { process: processName, build, log, clock });
  if (otlp) owned.own(otlp);
  return { telemetry, log, otlp };
}

/** Every service of the process reads a policy anew that somebody changed. */
function hearPolicies(parts: {
  readonly caller: ServiceCaller;
  readonly workloads: WorkloadSet;
  readonly first: Workload;
  readonly log: Logger;
  readonly instance: string;
  readonly clock: Clock;
  readonly instances: ReadonlyMap<string, ServiceInstance>;
}): AsyncDisposable {
  const { caller, workloads, first, instances, ...rest } = parts;
  // A service may hear of policies as a workload that can do nothing else (SUP-065).
  const bus = consumerBus(caller, workloads.byName.get(`${first.name}-policy`) ?? first);
  const changed = async (envId: string, service: string) => {
    for (const made of instances.values()) await made.policyChanged(envId, service);
  };
  return policyReload({ bus, service: first.name, changed, ...rest });
}

const failed =
  (id: string, what: string) =>
  (cause: unknown): never => {
    throw new Error(`${id} failed to ${what}`, { cause });
  };

const loaded = async ({ plugin, ...service }: LoadedService): Promise<OpenedService> => ({
  ...service,
  plugin: typeof plugin === 'function' ? await plugin().catch(failed(service.manifest.id, 'load')) : plugin,
});

/** The one listener of the process: every service answers behind it, under a certificate of its own. */
async function listen(
  owned: DisposalStack,
  {
    bootstrap,
    log,
    workloads,
    first,
    revoked,
    instances,
  }: {
    bootstrap: Bootstrap;
    log: Logger;
    workloads: WorkloadSet;
    first: Workload;
    revoked: RevokedCertificates;
    instances: ReadonlyMap<string, ServiceInstance>;
  },
): Promise<number> {
  const { anchors, pqMode, domain, manifests, ip = LOOPBACK } = bootstrap;
  const { key, cert } = { key: first.credential('listener').key, cert: first.credential('listener').chain };
  const listener = new InternalListener({
    log,
    pqMode,
    contextFor: name => ((name && workloads.listenerOf(name, manifests)) || first).listenerContext(),
    clientRoot: anchors.pq.root,
    key,
    cert,
    platformHost: label => platformHost(label, domain),
    revoked,
  });
  for (const instance of instances.values()) listener.mount(instance.app);
  const port = await listener.listen(ip, bootstrap.port);
  owned.own(listener);
  return port;
}

/** Tier after tier, all of one beside each other; each is told to the registry when it has started. */
async function startTiers(
  manifests: readonly Manifest[],
  {
    instances,
    signal,
    progress,
    register,
  }: {
    instances: ReadonlyMap<string, ServiceInstance>;
    signal: AbortSignal;
    progress: (text: string) => void;
    register: (manifest: Manifest) => Promise<unknown>;
  },
): Promise<void> {
  const tiers = [...new Set(manifests.map(({ placement }) => placement.tier))].sort((left, right) => left - right);
  for (const tier of tiers) {
    const members = manifests.filter(({ placement }) => placement.tier === tier);
    progress(`Starting ${members.map(({ title }) => title).join(', ')}`);
    await Promise.all(
      members.map(async manifest => {
        await instances.get(manifest.id)?.start(signal).catch(failed(manifest.id, 'start'));
        await register(manifest);
      }),
    );
  }
}
