import { setTimeout as delay } from 'node:timers/promises';
import {
  type AnyPlugin,
  type AnyRoute,
  type Caller,
  type Context,
  type KeyValue,
  type Logger,
  type PluginBehaviour,
  type ProcessHost,
  type SigningAuthority,
  SYSTEM,
  type TokenChecks,
} from '@platform/sdk';
import type { Clock } from '../../base/clock.ts';
import { DisposalStack } from '../../base/disposal-stack.ts';
import { type Manifest, policyEvent } from '../../base/manifest.ts';
import { pageResources } from '../../http/pages/page-resources.ts';
import { type MountedRoute, type RouteHandler, ServiceApp } from '../../http/service-app.ts';
import { admittedAs } from '../../http/operation.ts';
import { ReplayedAnswers } from '../../http/replayed-answers.ts';
import { StreamTickets } from '../../http/doors/stream-tickets.ts';
import type { EnvironmentStates } from '../../identity/environment-states.ts';
import type { Identity, Verifier } from '../../identity/tokens/verifier.ts';
import type { Workload } from '../../identity/workload.ts';
import type { ConsumerBus } from '../../outbox/consumption/event-consumer.ts';
import type { Relay } from '../../outbox/relay/relay.ts';
import { PolicyEngine } from '../../policy/policy-engine.ts';
import type { PolicyPort } from '../../policy/policy-port.ts';
import type { BackendPools } from '../../routing/backend-pools.ts';
import type { ServiceCaller } from '../../routing/service-caller.ts';
import type { SecretChain } from '../../secrets/secret-chain.ts';
import type { PostgresPool } from '../../storage/postgres/postgres-pool.ts';
import { ServiceMetrics } from '../../telemetry/service-metrics.ts';
import { actionsOf } from '../catalog-actions.ts';
import { consumersOf } from './service-consumers.ts';
import type { JobRunner } from '../../work/job-runner.ts';
import type { TaskRunner } from '../../work/task-runner.ts';
import { jobsOf, tasksOf } from './service-work.ts';
import { LocalCalls } from './local-calls.ts';
import { migrateService } from './service-migrations.ts';
import { tellPolicy } from '../policy/policy-events.ts';
import { workRoutes } from './work-routes.ts';
import { environmentRoutes } from './environment-data.ts';
import { type KernelRouteParts, kernelRoutes, ticketRoutes } from './kernel-routes.ts';
import type { KeySettings } from '../keys/key-settings.ts';
import { openKeys } from '../keys/service-keys.ts';
import { pluginContext } from '../context/plugin-context.ts';
import { policyAdministration } from '../policy/policy-administration.ts';

const TRAFFIC_MS = 10_000;

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
  readonly platform: Context<never>['platform'];
  readonly instance: string;
  readonly build: string;
  readonly failedPlugins: KernelRouteParts['failedPlugins'];
  readonly seen?: (operation: string, status: number, problem: string | undefined) => void;
}

/**
 * One service in this process. Its life, in order: made → migrated → set up (mounted, refusing) → started (ready) → draining → stopped.
 * What it opens belongs to it and is released newest first.
 */
export class ServiceInstance implements AsyncDisposable {
  readonly manifest: Manifest;
  readonly #parts: ServiceInstanceParts;
  readonly #owned = new DisposalStack();
  readonly #engine: PolicyEngine;
  readonly #startedAt = Date.now();
  #app: ServiceApp | undefined;
  #behaviour: PluginBehaviour<never, never> | undefined;
  #keys: Awaited<ReturnType<typeof openKeys>> = {};
  #state: 'made' | 'started' | 'draining' | 'stopped' = 'made';
  #consumers: AsyncDisposable[] = [];
  #jobs: JobRunner | undefined;
  #tasks: TaskRunner | undefined;
  readonly #tickets: StreamTickets;
  readonly #local: LocalCalls;
  readonly #metrics: ServiceMetrics;

  constructor(parts: ServiceInstanceParts) {
    this.#parts = parts;
    this.manifest = parts.manifest;
    this.#metrics = new ServiceMetrics(parts.manifest.id, parts.manifest.metrics ?? {}, parts.log);
    this.#local = new LocalCalls({ ...parts, app: () => this.app, accepting: () => this.#state === 'started' });
    this.#engine = new PolicyEngine({
      service: parts.manifest.id,
      log: parts.log,
      load: envId => parts.policy.snapshot(parts.manifest.id, envId),
      bootstrapEnvs: new Set([SYSTEM.envId]),
      now: () => parts.clock.now(),
    });
    this.#tickets = new StreamTickets({
      service: parts.manifest.id,
      kv: parts.kv,
      now: () => parts.clock.now().getTime(),
      live: caller => this.#identityOf(caller),
    });
  }

  get app(): ServiceApp {
    if (!this.#app) throw new Error(`${this.manifest.id} is not set up`);
    return this.#app;
  }

  async migrate(): Promise<void> {
    const { plugin, pool, manifest } = this.#parts;
    await migrateService(plugin, manifest.id, pool);
  }

  /** Runs the plugin's `setup` and mounts its doors; they refuse with 503 until `start`. */
  async setUp(): Promise<void> {
    const { plugin, manifest, log, verifier } = this.#parts;
    const { keySettings: settings, pool, platform, secrets } = this.#parts;
    this.#keys = await openKeys({ manifest, settings, dataDir: platform.dataDir, secrets, sql: pool.sql });
    const context = pluginContext({
      ...this.#parts,
      keys: this.#keys,
      engine: this.#engine,
      tellPolicy: this.#tellPolicy,
      owned: this.#owned,
      tasks: () => this.#tasks,
      metrics: this.#metrics.declared.instruments,
      identityOf: async caller => admittedAs(caller) ?? this.#identityOf(caller),
      verify: async ({ headers: { authorization }, peer }) =>
        authorization !== undefined || peer
          ? verifier.verify({ authorization, peer, service: manifest.id, tenantEnvId: undefined })
          : undefined,
    });
    this.#behaviour = (await plugin.setup(context)) as PluginBehaviour<never, never>;
    const handlers = this.#behaviour.routes as Readonly<Record<string, RouteHandler>>;
    const routes: Record<string, MountedRoute> = {};
    // From the contract itself: JSON loses which query members are optional.
    for (const [name, route] of Object.entries(plugin.contract.routes as Readonly<Record<string, AnyRoute>>)) {
      const handler = handlers[name];
      if (!handler) throw new Error(`${manifest.id} declares the route ${name} and gives it no handler`);
      routes[name] = { route, handler };
    }
    const kernel = this.#kernelRoutes(routes);
    // A contract may declare an endpoint of the kernel itself, where a document gives it another shape.
    const taken = new Set(Object.values(routes).map(({ route }) => `${route.method} ${route.path}`));
    for (const [name, mounted] of Object.entries(kernel))
      if (!taken.has(`${mounted.route.method} ${mounted.route.path}`)) routes[`kernel.${name}`] ??= mounted;
    this.#app = new ServiceApp({
      manifest,
      routes,
      aliases: pageResources(manifest),
      actions: manifest.actions,
      engine: this.#engine,
      verifier,
      log,
      clock: this.#parts.clock,
      tickets: this.#tickets,
      environments: this.#parts.environments,
      metrics: this.#metrics,
      answers: new ReplayedAnswers(this.#parts.pool.sql, () => this.#parts.clock.now()),
      originOf: host => this.#parts.platform.publicOrigin(host),
      accepting: () => this.#state === 'started',
      ...(this.#parts.seen ? { seen: this.#parts.seen } : {}),
    });
  }

  /** Opens the doors, then begins to relay, consume and run jobs. */
  async start(signal: AbortSignal): Promise<void> {
    const { caller, manifest, relay, pool } = this.#parts;
    this.#owned.own(caller.addLocal(manifest.id, this.#local));
    this.#state = 'started';
    await (this.#behaviour as { ready?: (signal: AbortSignal) => Promise<void> }).ready?.(signal);
    await relay.attach(manifest.id, pool, { pollMs: (manifest.placement.outbox_poll_s ?? 2) * 1_000 });
    this.#owned.defer(() => relay.detach(manifest.id));
    const work = { ...this.#parts, keys: this.#keys, behaviour: this.#behaviour ?? {} };
    this.#jobs = this.#owned.own(jobsOf(work));
    this.#tasks = this.#owned.own(tasksOf(work));
    await this.#tasks.start();
    this.#owned.own(this.#parts.clock.every(30_000, () => this.#engine.reloadAll()));
    if (manifest.vertical === 'platform') this.#owned.own(this.#parts.clock.every(TRAFFIC_MS, () => this.#tellTraffic()));
    const handlers = ((this.#behaviour as { on?: object }).on ?? {}) as Record<string, (delivery: object) => Promise<void>>;
    this.#consumers = consumersOf(this.#parts, handlers).map(consumer => this.#owned.own(consumer));
  }

  /** Counters for the statistics (CA-089). Nobody may listen, and the store may be away: then they are lost. */
  async #tellTraffic(): Promise<void> {
    const traffic = this.#metrics.traffic.take(this.#parts.clock.now());
    if (traffic) await this.#parts.kv.call('PUBLISH', 'stat:metrics', JSON.stringify(traffic)).catch(() => undefined);
  }

  /** Refuses new work and finishes what is in flight, at most `deadlineMs`. */
  async drain(deadlineMs: number): Promise<void> {
    const late = delay(deadlineMs, undefined, { ref: false });
    await Promise.race([(this.#behaviour as { drain?: () => Promise<void> } | undefined)?.drain?.(), late]);
    this.#state = 'draining';
    await Promise.all(this.#consumers.map(consumer => Promise.race([consumer[Symbol.asyncDispose](), late])));
    await Promise.race([Promise.all([this.#jobs?.[Symbol.asyncDispose](), this.#tasks?.drain()]), late]);
    await Promise.race([this.#app?.idle(), late]);
  }

  /** A change of policy heard on the bus. */
  async policyChanged(envId: string, service: string): Promise<void> {
    if (service === this.manifest.id || service === '*') await this.#engine.changed(envId, null);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#state = 'stopped';
    await this.#owned[Symbol.asyncDispose]();
  }

  async readiness(): Promise<Record<string, { ok: boolean; detail?: string }>> {
    const { pool, kv } = this.#parts;
    const [database, store] = await Promise.all([
      pool.healthy(),
      kv.call('PING').then(
        () => true,
        () => false,
      ),
    ]);
    const checks: Record<string, { ok: boolean; detail?: string }> = {
      database: { ok: database },
      key_value: { ok: store },
      serving: { ok: this.#state === 'started' },
    };
    for (const [name, check] of Object.entries(
      (this.#behaviour as { checks?: Record<string, () => Promise<boolean>> } | undefined)?.checks ?? {},
    )) {
      checks[name] = await check().then(
        ok => ({ ok }),
        () => ({ ok: false, detail: 'the check failed' }),
      );
    }
    return checks;
  }

  /** This service's figures for a collector, until what is answered is disposed. */
  measured(by: { measure(source: () => Promise<readonly object[]>): Disposable }): void {
    this.#owned.own(by.measure(async () => this.#metrics.otlp(await this.#gauges())));
  }

  async #gauges(): Promise<Readonly<Record<string, number>>> {
    const { manifest } = this.#parts;
    const state = (await this.#parts.relay.metrics()).get(manifest.id);
    const tasks = Object.keys(manifest.tasks).length > 0 ? await this.#tasks?.store.figures(this.#parts.clock.now()) : undefined;
    return {
      outbox_pending: state?.pending ?? 0,
      outbox_parked: state?.parked ?? 0,
      outbox_oldest_age_s: state?.oldest_age_s ?? 0,
      active_requests: this.#app?.active ?? 0,
      rss_bytes: process.memoryUsage.rss(),
      database_transactions: this.#parts.pool.transactions,
      ...(tasks ? { tasks_due: sum(tasks, 'due'), tasks_dead: sum(tasks, 'dead') } : {}),
      ...this.#parts.pools.figures,
      ...(this.#behaviour as { metrics?: () => Readonly<Record<string, number>> } | undefined)?.metrics?.(),
    };
  }

  /** Tells of this service's own policies; not where the registry does. */
  get #tellPolicy(): ReturnType<typeof tellPolicy> | undefined {
    const { manifest, pool } = this.#parts;
    const tells = policyEvent(manifest.id) in manifest.events && !manifest.capabilities.includes('policy-store');
    return tells ? tellPolicy(manifest.id, pool) : undefined;
  }

  #kernelRoutes(own: Readonly<Record<string, MountedRoute>>): Record<string, MountedRoute> {
    const { manifest, build, policy, scopesOf, failedPlugins } = this.#parts;
    const described = () => ({ ...Object.fromEntries(Object.entries({ ...kernel, ...own }).map(([name, { route }]) => [name, route])) });
    const kernel: Record<string, MountedRoute> = {
      ...kernelRoutes({
        manifest,
        build,
        startedAt: this.#startedAt,
        active: () => this.#app?.active ?? 0,
        totals: () => this.#metrics.totals,
        health: async () => (await (this.#behaviour as { health?: () => object } | undefined)?.health?.()) as Record<string, unknown>,
        readiness: () => this.readiness(),
        failedPlugins,
        metricsText: gauges => this.#metrics.text(gauges),
        metrics: async () => ({ ...(await this.#gauges()), ...(await this.#metrics.declared.figures()) }),
        allows: async (caller, actions) => {
          const { scopes } = await this.#identityOf(caller);
          return actions.some(action => scopes.has(manifest.vertical === 'platform' ? action : `${manifest.vertical}:${action}`));
        },
        described,
      }),
      ...ticketRoutes(own, this.#tickets),
      ...environmentRoutes(manifest, this.#parts.pool),
      ...workRoutes({ manifest, jobs: () => this.#jobs, tasks: () => this.#tasks, now: () => this.#parts.clock.now() }),
      ...policyAdministration({
        service: manifest.id,
        actionsOf: service => actionsOf(this.#parts.manifests(), service),
        keepsAll: manifest.capabilities.includes('policy-store'),
        port: policy,
        engine: this.#engine,
        scopesOf,
        ...(this.#tellPolicy ? { tell: this.#tellPolicy } : {}),
        log: this.#parts.log,
      }),
    };
    return kernel;
  }

  async #identityOf(caller: Caller): Promise<Identity> {
    if (caller.kind === 'machine')
      return { caller, principal: 'machine', scopes: await this.#parts.scopesOf({ kind: 'workload', id: caller.subject }, SYSTEM.envId) };
    return {
      caller,
      principal: caller.kind,
      scopes: await this.#parts.scopesOf({ kind: 'user', id: caller.userId }, caller.envId ?? SYSTEM.envId),
    };
  }
}

const sum = <K extends string>(rows: readonly Readonly<Record<K, number>>[], member: K): number =>
  rows.reduce((total, row) => total + row[member], 0);
