import {
  type AnyPlugin,
  type PlatformContext,
  type KeyValue,
  type ProcessHost,
  platformHost,
  platformLabel,
  platformZone,
} from '@platform/sdk';
import type { DependencyContainer } from 'tsyringe';
import type { Clock } from '../base/clock.ts';
import type { DisposalStack } from '../base/disposal-stack.ts';
import { newId } from '../base/ids.ts';
import type { Manifest } from '../base/manifest.ts';
import type { Authority } from '../identity/certificates/trust-anchors.ts';
import type { Workload } from '../identity/workload.ts';
import { PostgresPool } from '../storage/postgres/postgres-pool.ts';
import type { Telemetry } from '../telemetry/log.ts';
import { type Bootstrap, LOOPBACK, publicOrigin } from './boot/bootstrap.ts';
import { poolOptions } from './boot/database/pool-options.ts';
import { PARTS } from './boot/wiring.ts';
import type { KeySettings } from './keys/key-settings.ts';
import { consumerBus, policyPort } from './platform-calls.ts';
import { ServiceAlerts } from './process/service-alerts.ts';
import { signingAuthority } from './context/signing-authority.ts';
import { ServiceInstance } from './service/service-instance.ts';
import type { ServiceInstanceParts } from './service/service-instance-parts.ts';

export interface OpenedService {
  readonly plugin: AnyPlugin;
  readonly manifest: Manifest;
  readonly config: Readonly<Record<string, unknown>>;
  readonly keys?: KeySettings;
}

export interface AssemblyParts {
  readonly owned: DisposalStack;
  readonly bootstrap: Bootstrap;
  readonly wired: DependencyContainer;
  readonly telemetry: Telemetry;
  readonly clock: Clock;
  readonly kv: KeyValue;
  /** Names this process among those of a service. */
  readonly instance: string;
  readonly workloads: ReadonlyMap<string, Workload>;
  readonly authority: Authority | undefined;
  readonly processes: ProcessHost | undefined;
  readonly failedPlugins: () => readonly { plugin: string; reason: string }[];
  readonly seen: ((service: string) => NonNullable<ServiceInstanceParts['seen']>) | undefined;
}

/** Makes the services of one process out of what is wired: each with a pool, a workload and capabilities of its own. */
export class ServiceAssembly {
  readonly #parts: AssemblyParts;
  readonly #alerts: ServiceAlerts;

  constructor(parts: AssemblyParts) {
    this.#parts = parts;
    this.#alerts = new ServiceAlerts(parts.kv, parts.telemetry.logger('kernel'));
  }

  make({ plugin, manifest, config, keys = {} }: OpenedService): ServiceInstance {
    const { owned, bootstrap, wired, telemetry, clock, kv, instance, authority, processes, seen } = this.#parts;
    const workload = this.#workloadOf(manifest, undefined);
    const pool = new PostgresPool(poolOptions(bootstrap, manifest.id, workload));
    owned.defer(() => pool.close());
    const caller = wired.resolve(PARTS.caller);
    const made = new ServiceInstance({
      plugin,
      manifest,
      config,
      log: telemetry.logger(manifest.id),
      pool,
      clock,
      kv,
      authority: manifest.capabilities.includes('authority') && authority ? signingAuthority(authority) : undefined,
      listeners: bootstrap.listeners ?? {},
      processes: manifest.capabilities.includes('processes') ? processes : undefined,
      caller,
      pools: wired.resolve(PARTS.pools),
      workload,
      workloadOf: name => this.#workloadOf(manifest, name),
      verifier: wired.resolve(PARTS.verifier),
      tokens: wired.resolve(PARTS.tokens),
      secrets: wired.resolve(PARTS.secrets),
      keySettings: keys,
      relay: wired.resolve(PARTS.relay),
      bus: consumerBus(caller, workload),
      policy: policyPort(caller, workload),
      environments: wired.resolve(PARTS.environments),
      scopesOf: (principal, envId) => this.#scopesOf(principal, envId),
      workloadScopes: wired.resolve(PARTS.grants),
      manifests: () => bootstrap.manifests,
      platform: this.#platform(),
      instance,
      build: bootstrap.build,
      failedPlugins: () => this.#failedPlugins(),
      ...(seen ? { seen: seen(manifest.id) } : {}),
    });
    owned.own(made);
    return made;
  }

  /** The service's own, or one that its contract names, with or without the service's name before it. */
  #workloadOf({ id }: Manifest, name: string | undefined): Workload {
    const found = this.#parts.workloads.get(name === undefined ? id : `${id}-${name.replace(`${id}-`, '')}`);
    if (!found) throw new Error(`${id} declares no workload ${name}`);
    return found;
  }

  async #scopesOf({ kind, id }: { kind: 'user' | 'workload'; id: string }, envId: string): Promise<ReadonlySet<string>> {
    const { wired } = this.#parts;
    const identity = wired.resolve(PARTS.identity);
    if (kind === 'user') return new Set(await identity.personScopes(id, envId));
    return wired.resolve(PARTS.grants)(id)?.scopes ?? new Set((await identity.workload(id))?.scopes ?? []);
  }

  #platform(): PlatformContext<never>['platform'] {
    const { domain, build, dataDir, production, edgePort, ip = LOOPBACK } = this.#parts.bootstrap;
    return {
      domain,
      build,
      dataDir,
      production,
      ip,
      publicOrigin: host => publicOrigin(host, edgePort),
      zone: platformZone(domain),
      host: label => platformHost(label, domain),
      labelOf: host => platformLabel(host, domain),
      newId,
    };
  }

  async #failedPlugins(): Promise<{ plugin: string; reason: string }[]> {
    const raised = await this.#alerts.raised();
    return [
      ...this.#parts.failedPlugins(),
      ...raised.map(({ service_type, restarts, reason }) => ({
        plugin: service_type,
        reason: `given up after ${restarts} restarts: ${reason}`,
      })),
    ];
  }
}
