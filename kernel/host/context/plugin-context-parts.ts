import type {
  AnyContract,
  AnyPlugin,
  Caller,
  Context,
  KeySeeds,
  KeyValue,
  Logger,
  ProcessHost,
  Request,
  SealedBox,
  SigningAuthority,
  TokenChecks,
} from '@platform/sdk';
import type { Clock } from '../../base/clock.ts';
import type { DisposalStack } from '../../base/disposal-stack.ts';
import type { Manifest } from '../../base/manifest.ts';
import type { Identity } from '../../identity/tokens/verifier.ts';
import type { Workload } from '../../identity/workload.ts';
import type { ConsumerBus } from '../../outbox/consumption/consumer-bus.ts';
import type { PolicyEngine } from '../../policy/policy-engine.ts';
import type { PolicyPort } from '../../policy/policy-port.ts';
import type { BackendPools } from '../../routing/backend-pools.ts';
import type { ServiceCaller } from '../../routing/service-caller.ts';
import type { SecretChain } from '../../secrets/secret-chain.ts';
import type { PostgresPool } from '../../storage/postgres/postgres-pool.ts';
import type { DeclaredMetrics } from '../../telemetry/declared-metrics.ts';
import type { TaskRunner } from '../../work/task-runner.ts';

/** What the context of one plugin is made of. */
export interface PluginContextParts {
  readonly plugin: AnyPlugin;
  readonly manifest: Manifest;
  readonly config: Readonly<Record<string, unknown>>;
  readonly log: Logger;
  readonly pool: PostgresPool;
  readonly clock: Clock;
  readonly caller: ServiceCaller;
  readonly pools: BackendPools;
  readonly workloadOf: (name: string | undefined) => Workload;
  readonly secrets: SecretChain;
  readonly keys: Readonly<Record<string, SealedBox | KeySeeds>>;
  readonly engine: PolicyEngine;
  readonly policy: PolicyPort;
  /** Tells of a change of the service's own policies; absent where the registry does. */
  readonly tellPolicy: ((envId: string, payload: object) => Promise<void>) | undefined;
  readonly identityOf: (caller: Caller) => Promise<Identity>;
  readonly verify: (request: Pick<Request, 'headers' | 'peer'>) => Promise<Identity | undefined>;
  readonly tokens: TokenChecks;
  readonly manifests: () => readonly Manifest[];
  readonly platform: Context<AnyContract>['platform'];
  readonly kv: KeyValue;
  readonly authority: SigningAuthority | undefined;
  readonly processes: ProcessHost | undefined;
  /** Sockets that were handed to this process, by the listener door they are for. */
  readonly listeners: Readonly<Record<string, number>>;
  readonly owned: DisposalStack;
  readonly metrics: DeclaredMetrics['instruments'];
  /** There once the plugin is set up. */
  readonly tasks: () => TaskRunner | undefined;
  readonly bus: ConsumerBus;
  readonly instance: string;
}
