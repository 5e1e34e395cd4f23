import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import {
  type AnyContract,
  type AnyPlugin,
  type Caller,
  type Context,
  type KeySeeds,
  type KeyValue,
  type Logger,
  ProblemError,
  type ProcessHost,
  type Request,
  type SigningAuthority,
  type SealedBox,
  type TokenChecks,
} from '@platform/sdk';
import { TimedCache } from '../../base/cache.ts';
import type { Clock } from '../../base/clock.ts';
import type { DisposalStack } from '../../base/disposal-stack.ts';
import type { Manifest } from '../../base/manifest.ts';
import { kernelProblem } from '../../base/kernel-problem.ts';
import { page } from '../../http/paging.ts';
import { foreignCheck } from '../../http/foreign-schema.ts';
import { Validator } from '../../http/schema.ts';
import { actionKey } from '../../identity/tokens/scope-name.ts';
import type { Identity } from '../../identity/tokens/verifier.ts';
import type { Workload } from '../../identity/workload.ts';
import type { ConsumerBus } from '../../outbox/consumption/event-consumer.ts';
import { cronTimes } from '../../work/cron-times.ts';
import { reseal } from '../../work/reseal.ts';
import type { TaskRunner } from '../../work/task-runner.ts';
import type { PolicyEngine } from '../../policy/policy-engine.ts';
import { inquire } from '../../policy/policy-inquiry.ts';
import type { PolicyPort } from '../../policy/policy-port.ts';
import type { BackendPools } from '../../routing/backend-pools.ts';
import type { ServiceCaller } from '../../routing/service-caller.ts';
import type { SecretChain } from '../../secrets/secret-chain.ts';
import { secretsPort } from '../../secrets/secrets-port.ts';
import type { PostgresPool } from '../../storage/postgres/postgres-pool.ts';
import { locksOf } from '../../storage/lock.ts';
import { RateLimit } from '../../storage/rate-limit.ts';
import type { DeclaredMetrics } from '../../telemetry/declared-metrics.ts';
import { catalogActions } from '../catalog-actions.ts';
import { runtimeConsumer } from './service-consumers.ts';
import { correlationOf, Transactions } from './transactions.ts';

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

/** Builds what a plugin may touch, and nothing else: capabilities it did not declare are not there. */
export function pluginContext(parts: PluginContextParts): Context<AnyContract> {
  const { manifest, plugin, pool } = parts;
  let listed: { readonly manifests: readonly Manifest[]; readonly actions: ReturnType<typeof catalogActions> } | undefined;
  const transactions = new Transactions(parts);

  const context: Context<AnyContract> = {
    config: parts.config as never,
    log: parts.log,
    db: {
      sql: pool.sql,
      tx: transactions.tx,
      one: transactions.one,
      listen: (channel, listener) => pool.listen(channel, listener),
    },
    clock: parts.clock,
    every: (ms, work) => parts.clock.every(ms, work),
    cron: cronTimes,
    services: Object.fromEntries(
      Object.entries(plugin.uses as Record<string, AnyContract>).map(([name, contract]) => [
        name,
        parts.caller.client(
          parts.workloadOf(callerAt(manifest, contract.base.id as string)),
          contract.base.id,
          contract.routes,
          contract.problems,
        ),
      ]),
    ) as never,
    events: { subscribe: (wanted, handler) => runtimeConsumer(parts, wanted, handler) },
    tasks: {
      left: async (name, key) => ((await parts.tasks()?.left(name, key)) ?? []) as never,
      attempt: async (name, key) => (await parts.tasks()?.attempt(name, key)) ?? 'absent',
    },
    metrics: parts.metrics as never,
    keys: parts.keys as never,
    reseal: async (name, places, signal) => {
      const box = parts.keys[name];
      if (!box || !('seal' in box)) throw new Error(`${manifest.id} declares no key ${name} that seals`);
      await reseal({ service: manifest.id, tasks: manifest.tasks, pool, log: parts.log }, { name, box }, places, signal);
    },
    secrets: secretsPort(parts.secrets),
    policy: {
      attributes: (principal, envId) => parts.engine.attributes(principal, envId),
      allows: async (caller, action, resource) =>
        parts.engine.allows({
          identity: await parts.identityOf(caller),
          action: actionKey(manifest.vertical, action),
          envId: caller.envId,
          resource,
          correlationId: correlationOf(manifest.id),
        }),
      explain: inquiry =>
        inquire(inquiry, {
          load: capability(manifest, 'policy-store', parts.policy).snapshot,
          log: parts.log,
          correlationId: correlationOf(manifest.id),
        }),
    },
    catalog: {
      manifests: parts.manifests,
      actions: () => {
        const manifests = parts.manifests();
        if (listed?.manifests !== manifests) listed = { manifests, actions: manifests.flatMap(catalogActions) };
        return listed.actions;
      },
      checkOf: (schema, { base = '', foreign = false } = {}) => {
        if (foreign) return foreignCheck(schema, base);
        const validator = new Validator(schema);
        return value => (validator.check(value) ? [] : validator.faults(value, base));
      },
    },
    platform: parts.platform,
    cache: options => new TimedCache(options, () => parts.clock.now().getTime()),
    limit: options => new RateLimit(parts.kv, manifest.id, parts.log, options),
    lock: locksOf(parts.kv, manifest.id, parts.log),
    files: { directory: () => ownFolder(parts.platform.dataDir, manifest.id) },
    kv: capability(manifest, 'key-value', parts.kv),
    backends: capability(manifest, 'backends', parts.pools.facade(parts.workloadOf)),
    authority: capability(manifest, 'authority', parts.authority ?? ({} as SigningAuthority)),
    listen: async (door, server, { port, address }) => {
      if (!Object.values(manifest.routes).some(route => route.door === 'listener' && route.path === door))
        throw new Error(`${manifest.id} declares no listener ${door}`);
      const fd = parts.listeners[door];
      await new Promise<void>((resolve, reject) => {
        server.once('error', reject);
        server.listen(fd === undefined ? { port, host: address } : { fd }, () => resolve());
      });
      return fd !== undefined;
    },
    processes: capability(manifest, 'processes', parts.processes ?? ({} as ProcessHost)),
    auth: {
      verify: async request => {
        const identity = await parts.verify(request);
        if (!identity) return undefined;
        const { caller } = identity;
        return {
          caller,
          permits: action =>
            parts.engine.allows({
              identity,
              action: actionKey(manifest.vertical, action),
              envId: caller.envId,
              correlationId: correlationOf(manifest.id),
            }),
        };
      },
    },
    tokens: parts.tokens,
    page: (query, spec, read) => page(pool.sql, query, spec, read),
    requireVersion: (ifMatch, version) => {
      if (ifMatch && !ifMatch.includes(version))
        throw kernelProblem('precondition_failed', { detail: 'Read it again and repeat the change.', headers: { etag: `"${version}"` } });
    },
    problem: (code, more) => {
      const decl = manifest.problems[code as string];
      if (!decl)
        return new ProblemError(
          'kernel',
          'internal',
          { status: 500, title: 'Something went wrong on our side', retry: 'later', log: 'error' },
          { cause: new Error(`${manifest.id} threw the undeclared problem ${String(code)}`) },
        );
      return new ProblemError(manifest.id, code as string, decl, more);
    },
    own: resource => parts.owned.own(resource),
  };
  return Object.freeze(context);
}

/** `<data>/files/{service}`. Service ids are of a-z and 0-9, so that none leads anywhere else (check E002). */
function ownFolder(dataDir: string, service: string): string {
  const folder = join(dataDir, 'files', service);
  mkdirSync(folder, { recursive: true, mode: 0o700 });
  return folder;
}

/**
 * The workload a typed client calls as: the further one whose needs name that service (`{service}-post`, NTF-056), the plugin's own when
 * `uses` does or nobody.
 */
function callerAt({ uses, workloads }: Manifest, service: string): string | undefined {
  return service in uses ? undefined : Object.keys(workloads).find(name => service in (workloads[name] ?? {}));
}

function capability<T extends object>(manifest: Manifest, name: string, value: T): T {
  if (manifest.capabilities.includes(name)) return value;
  return new Proxy(value, {
    get: () => {
      throw new Error(`${manifest.id} uses the capability '${name}' without declaring it`);
    },
  });
}
