import type { AnyPlugin, PlatformContext, KeyValue, Logger, ProcessHost, SigningAuthority, TokenChecks } from '@platform/sdk';
import type { Clock } from '../../base/clock.ts';
import type { Manifest } from '../../base/manifest.ts';
import type { EnvironmentStates } from '../../identity/environment-states.ts';
import type { Verifier } from '../../identity/tokens/verifier.ts';
import type { Workload } from '../../identity/workload.ts';
import type { ConsumerBus } from '../../outbox/consumption/consumer-bus.ts';
import type { Relay } from '../../outbox/relay/relay.ts';
import type { PolicyPort } from '../../policy/policy-port.ts';
import type { BackendPools } from '../../routing/backend-pools.ts';
import type { ServiceCaller } from '../../routing/service-caller.ts';
import type { SecretChain } from '../../secrets/secret-chain.ts';
import type { PostgresPool } from '../../storage/postgres/postgres-pool.ts';
import type { KeySettings } from '../keys/key-settings.ts';

type FailedPlugins = readonly { plugin: string; reason: string }[];

/** What one service in a process is made of. */
export interface ServiceInstanceParts {
  readonly plugin: AnyPlugin;
  readonly manifest: Manifest;
  readonly config: Readonly<Record<string, unknown>>;
  readonly log: Logger;
  readonly pool: PostgresPool;
  readonly clock: Clock;
  readonly kv: KeyValue;
  readonly authority: SigningAuthority | undefined;
  /** Sockets that were handed to this process, by the listener door they are for. */
  readonly listeners: Readonly<Record<string, number>>;
  /** The machine's processes, where this process may start some. */
  readonly processes: ProcessHost | undefined;
  readonly caller: ServiceCaller;
  readonly pools: BackendPools;
  readonly workload: Workload;
  readonly workloadOf: (name: string | undefined) => Workload;
  readonly verifier: Verifier;
  readonly tokens: TokenChecks;
  readonly secrets: SecretChain;
  /** What the settings say of the keys of its contract. */
  readonly keySettings: KeySettings;
  readonly relay: Relay;
  readonly bus: ConsumerBus;
  readonly policy: PolicyPort;
  readonly environments: EnvironmentStates;
  readonly scopesOf: (principal: { kind: 'user' | 'workload'; id: string }, envId: string) => Promise<ReadonlySet<string>>;
  readonly workloadScopes: (name: string) => { vertical: string; scopes: ReadonlySet<string> } | undefined;
  readonly manifests: () => readonly Manifest[];
  readonly platform: PlatformContext<never>['platform'];
  readonly instance: string;
  readonly build: string;
  readonly failedPlugins: () => FailedPlugins | Promise<FailedPlugins>;
  readonly seen?: (operation: string, status: number, problem: string | undefined) => void;
}
