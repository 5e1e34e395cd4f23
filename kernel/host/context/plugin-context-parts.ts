import type { AnyContract, Caller, PlatformContext, KeySeeds, Request, SealedBox } from '@platform/sdk';
import type { ServiceInstanceParts } from '../service/service-instance-parts.ts';
import type { DisposalStack } from '../../base/disposal-stack.ts';
import type { Identity } from '../../identity/tokens/verifier.ts';
import type { PolicyEngine } from '../../policy/policy-engine.ts';
import type { DeclaredMetrics } from '../../telemetry/declared-metrics.ts';
import type { TaskRunner } from '../../work/task-runner.ts';

/** What the context of one plugin is made of. */
export interface PluginContextParts
  extends Pick<
    ServiceInstanceParts,
    | 'plugin'
    | 'manifest'
    | 'config'
    | 'log'
    | 'pool'
    | 'clock'
    | 'caller'
    | 'pools'
    | 'workloadOf'
    | 'secrets'
    | 'policy'
    | 'tokens'
    | 'manifests'
    | 'kv'
    | 'authority'
    | 'processes'
    | 'listeners'
    | 'bus'
    | 'instance'
  > {
  readonly keys: Readonly<Record<string, SealedBox | KeySeeds>>;
  readonly engine: PolicyEngine;
  /** Tells of a change of the service's own policies; absent where the registry does. */
  readonly tellPolicy: ((envId: string, payload: object) => Promise<void>) | undefined;
  readonly identityOf: (caller: Caller) => Promise<Identity>;
  readonly verify: (request: Pick<Request, 'headers' | 'peer'>) => Promise<Identity | undefined>;
  readonly platform: PlatformContext<AnyContract>['platform'];
  readonly owned: DisposalStack;
  readonly metrics: DeclaredMetrics['instruments'];
  /** There once the plugin is set up. */
  readonly tasks: () => TaskRunner | undefined;
}
