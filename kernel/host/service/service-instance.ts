import { setTimeout as delay } from 'node:timers/promises';
import { type AnyRoute, type Caller, SYSTEM } from '@platform/sdk';
import { DisposalStack } from '../../base/disposal-stack.ts';
import { type Manifest, policyEvent } from '../../base/manifest.ts';
import { pageResources } from '../../http/pages/page-resources.ts';
import { type MountedRoute, type RouteHandler, ServiceApp } from '../../http/service-app.ts';
import { admittedAs } from '../../http/operation.ts';
import { ReplayedAnswers } from '../../http/answers/replayed-answers.ts';
import { StreamTickets } from '../../http/doors/stream-tickets.ts';
import type { Identity } from '../../identity/tokens/verifier.ts';
import { PolicyEngine } from '../../policy/policy-engine.ts';
import { ServiceMetrics } from '../../telemetry/service-metrics.ts';
import { actionsOf } from '../catalog-actions.ts';
import { type AnyBehaviour, ServiceSight } from './service-sight.ts';
import type { ServiceInstanceParts } from './service-instance-parts.ts';
import { consumersOf } from './service-consumers.ts';
import type { JobRunner } from '../../work/job-runner.ts';
import type { TaskRunner } from '../../work/task-runner.ts';
import { jobsOf, tasksOf } from './service-work.ts';
import { LocalCalls } from './local-calls.ts';
import { migrateService } from './service-migrations.ts';
import { tellPolicy } from '../policy/policy-events.ts';
import { workRoutes } from './work-routes.ts';
import { environmentRoutes } from './environment-data.ts';
import { kernelRoutes, ticketRoutes } from './kernel-routes.ts';
import { openKeys } from '../keys/service-keys.ts';
import { pluginContext } from '../context/plugin-context.ts';
import { Transactions } from '../context/transactions.ts';
import { policyAdministration } from '../policy/policy-administration.ts';

const TRAFFIC_MS = 10_000;

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
  #behaviour: AnyBehaviour | undefined;
  #keys: Awaited<ReturnType<typeof openKeys>> = {};
  #state: 'made' | 'started' | 'draining' | 'stopped' = 'made';
  #consumers: AsyncDisposable[] = [];
  #jobs: JobRunner | undefined;
  #tasks: TaskRunner | undefined;
  readonly #tickets: StreamTickets;
  readonly #local: LocalCalls;
  readonly #metrics: ServiceMetrics;
  readonly #sight: ServiceSight;

  constructor(parts: ServiceInstanceParts) {
    this.#parts = parts;
    this.manifest = parts.manifest;
    this.#metrics = new ServiceMetrics(parts.manifest.id, parts.manifest.metrics ?? {}, parts.log);
    this.#sight = new ServiceSight(parts, this.#metrics, () => ({
      serving: this.#state === 'started',
      active: this.#app?.active ?? 0,
      tasks: this.#tasks,
      behaviour: this.#behaviour,
    }));
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
    this.#behaviour = (await plugin.setup(context)) as AnyBehaviour;
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
      limit: context.limit,
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
    await this.#behaviour?.ready?.(signal);
    await relay.attach(manifest.id, pool, { pollMs: (manifest.placement.outbox_poll_s ?? 2) * 1_000 });
    this.#owned.defer(() => relay.detach(manifest.id));
    const work = { ...this.#parts, keys: this.#keys, behaviour: this.#behaviour ?? {} };
    this.#jobs = this.#owned.own(jobsOf(work));
    this.#tasks = this.#owned.own(tasksOf(work));
    await this.#tasks.start();
    this.#owned.own(this.#parts.clock.every(30_000, () => this.#engine.reloadAll()));
    if (manifest.vertical === 'platform') this.#owned.own(this.#parts.clock.every(TRAFFIC_MS, () => this.#sight.tellTraffic()));
    const handlers = (this.#behaviour?.on ?? {}) as Record<string, (delivery: object) => Promise<void>>;
    this.#consumers = consumersOf(this.#parts, handlers, this.#behaviour?.missed).map(consumer => this.#owned.own(consumer));
  }

  /** Refuses new work and finishes what is in flight, at most `deadlineMs`. */
  async drain(deadlineMs: number): Promise<void> {
    const late = delay(deadlineMs, undefined, { ref: false });
    await Promise.race([this.#behaviour?.drain?.(), late]);
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

  /** This service's figures for a collector, until what is answered is disposed. */
  measured(by: { measure(source: () => Promise<readonly object[]>): Disposable }): void {
    this.#owned.own(by.measure(() => this.#sight.otlp()));
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
        sight: this.#sight,
        failedPlugins,
        allows: async (caller, actions) => {
          const { scopes } = await this.#identityOf(caller);
          return actions.some(action => scopes.has(manifest.vertical === 'platform' ? action : `${manifest.vertical}:${action}`));
        },
        described,
      }),
      ...ticketRoutes(own, this.#tickets),
      ...environmentRoutes(manifest, this.#parts.pool),
      ...workRoutes({
        manifest,
        jobs: () => this.#jobs,
        tasks: () => this.#tasks,
        now: () => this.#parts.clock.now(),
        tx: new Transactions({ ...this.#parts, keys: this.#keys }).tx,
      }),
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
      // Nobody holds anything outside of an environment.
      scopes: caller.envId === undefined ? new Set() : await this.#parts.scopesOf({ kind: 'user', id: caller.userId }, caller.envId),
    };
  }
}
