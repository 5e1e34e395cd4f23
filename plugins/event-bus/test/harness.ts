import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { rmSync } from 'node:fs';
import type { AnyPlugin, Caller, Logger } from '@platform/sdk';
import { kernelProblem } from '../../../kernel/base/kernel-problem.ts';
import { ManualClock } from '../../../kernel/base/clock.ts';
import { newId } from '../../../kernel/base/ids.ts';
import { type Manifest, manifestOf } from '../../../kernel/base/manifest.ts';
import { keyValuePort } from '../../../kernel/host/service/key-value-port.ts';
import { consumerBus, deliveryTargets } from '../../../kernel/host/platform-calls.ts';
import { ServiceInstance } from '../../../kernel/host/service/service-instance.ts';
import type { Outgoing } from '../../../kernel/http/operation-call.ts';
import { EnvironmentStates } from '@platform/kernel/identity/environment-states';
import type { Identity, Verifier } from '../../../kernel/identity/tokens/verifier.ts';
import type { Workload } from '../../../kernel/identity/workload.ts';
import { deliverTo } from '../../../kernel/outbox/relay/bus-delivery.ts';
import { Relay } from '../../../kernel/outbox/relay/relay.ts';
import type { PolicyPort } from '../../../kernel/policy/policy-port.ts';
import { ServiceCaller } from '../../../kernel/routing/service-caller.ts';
import { type EmbeddedValkey, startEmbeddedValkey } from '../../../kernel/storage/valkey/embedded-valkey.ts';
import { TestCluster } from '../../../kernel/storage/fixtures/test-cluster.ts';
import { connectKeyValue, type KeyValue } from '../../../kernel/storage/key-value.ts';
import type { PostgresPool } from '../../../kernel/storage/postgres/postgres-pool.ts';
import { PolicyStore } from '../../../kernel/test/policy-store.ts';
import plugin from '../src/plugin.ts';

const base = {
  envId: undefined,
  authEnvId: undefined,
  thumbprint: undefined,
  platformAdmin: false,
  bound: true,
  email: undefined,
  emailVerified: false,
  sessionId: undefined,
};

/** A workload; of the platform unless said otherwise. */
export const workload = (name: string, vertical: string | undefined = 'platform'): Caller => ({
  ...base,
  kind: 'machine',
  userId: undefined,
  service: name.split('-')[0] as string,
  subject: name,
  clientId: name,
  vertical,
});
/** A person signed in to an environment. */
export const person = (envId: string): Caller => ({
  ...base,
  kind: 'user',
  userId: 'u-1',
  service: undefined,
  subject: 'u-1',
  clientId: 'console',
  envId,
  vertical: undefined,
});

const SCOPES = new Set([
  'bus:produce',
  'bus:consume',
  'bus:read',
  'bus:admin',
  'bus:policy:read',
  'bus:policy:admin',
  'bus:contracts:write',
]);
export const identityOf = (caller: Caller, scopes: ReadonlySet<string> = SCOPES): Identity => ({ caller, principal: caller.kind, scopes });

interface Entry {
  readonly message_id: string;
  readonly event_type: string;
  readonly env_id: string;
  readonly payload: { readonly n?: number };
  readonly idempotency_key: string;
  readonly delivery_count: number;
  readonly [member: string]: unknown;
}

/** The databases of a test file: one Postgres, one key-value store. */
export class Stores implements AsyncDisposable {
  readonly cluster: TestCluster;
  readonly valkey: EmbeddedValkey;

  private constructor(cluster: TestCluster, valkey: EmbeddedValkey) {
    this.cluster = cluster;
    this.valkey = valkey;
  }

  static async start(): Promise<Stores> {
    const cluster = await TestCluster.start();
    return new Stores(cluster, await startEmbeddedValkey({ dataDir: cluster.dataDir }));
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.valkey.stop();
    await this.cluster[Symbol.asyncDispose]();
    rmSync(this.cluster.dataDir, { recursive: true, force: true });
  }
}

/** A bus as the host runs it, in the kernel's own service instance, with time in the test's hands and identities on its word. */
export class BusProcess implements AsyncDisposable {
  readonly clock = new ManualClock(Date.now());
  readonly pool: PostgresPool;
  readonly store: KeyValue;
  /** The registry's side of policy administration. */
  readonly policies = new PolicyStore();
  readonly instance: ServiceInstance;
  readonly caller: ServiceCaller;
  readonly logged: { level: string; fields: Record<string, unknown>; message: string }[] = [];
  readonly #disposals: (() => PromiseLike<unknown>)[] = [];
  #server: Server | undefined;

  private constructor(
    pool: PostgresPool,
    store: KeyValue,
    make: (process: BusProcess) => { instance: ServiceInstance; caller: ServiceCaller },
  ) {
    this.pool = pool;
    this.store = store;
    const { instance, caller } = make(this);
    this.instance = instance;
    this.caller = caller;
  }

  static async start(
    stores: Stores,
    {
      config = {},
      neighbours = [],
      url = stores.valkey.url,
    }: { config?: Record<string, unknown>; neighbours?: readonly Manifest[]; url?: string } = {},
  ): Promise<BusProcess> {
    const pool = await stores.cluster.pool('bus');
    const store = await connectKeyValue(url);
    const kv = await keyValuePort(store);
    // The query members of the contract itself: printed as JSON they lose that they are optional.
    const manifest = { ...manifestOf(plugin.contract, '0.1.0'), routes: plugin.contract.routes } as Manifest;
    const process = new BusProcess(pool, store, made => {
      const write =
        (level: string) =>
        (fields: object, message: string): void =>
          void made.logged.push({ level, fields: { ...fields }, message });
      const log: Logger = { debug: write('debug'), info: write('info'), warn: write('warn'), error: write('error') };
      const caller = new ServiceCaller({} as never);
      const self = { name: 'bus', thumbprint: 'test' } as Workload;
      const relay = new Relay({ log, deliver: deliverTo(deliveryTargets(caller, () => self)) });
      const { stub } = made.policies;
      const policy = {
        snapshot: async (service: string, env_id: string) => stub.policySnapshot({ query: { service, env_id } }),
        upsertSet: async (body: never) => stub.policyUpsertSet({ body }),
        upsertRelation: async (body: never) => stub.policyUpsertRelation({ body }),
        upsertAttribute: async (body: never) => stub.policyUpsertAttribute({ body }),
        putAttributes: async (body: never) => stub.policyPutAttributes({ body }),
        remove: async (body: never) => stub.policyRemove({ body }),
      } as unknown as PolicyPort;
      const verifier = {
        verify: async ({ authorization }: { authorization?: string }) => {
          if (authorization === undefined) throw kernelProblem('unauthenticated');
          return identityOf(JSON.parse(Buffer.from(authorization.slice(7), 'base64url').toString()) as Caller);
        },
      } as unknown as Verifier;
      const instance = new ServiceInstance({
        plugin: plugin as unknown as AnyPlugin,
        manifest,
        log,
        pool,
        clock: made.clock,
        kv,
        caller,
        relay,
        verifier,
        tokens: {} as never,
        workload: self,
        workloadOf: () => self,
        config: { produceRate: 1_000, produceBurst: 2_000, streamEntries: 1_000_000, ...config },
        pools: { facade: () => ({}) } as never,
        secrets: {} as never,
        keySettings: {},
        bus: consumerBus(caller, self),
        policy,
        environments: new EnvironmentStates({ read: async () => 'active', ask: async () => 'active' }),
        scopesOf: async () => SCOPES,
        workloadScopes: () => ({ vertical: 'platform', scopes: SCOPES }),
        manifests: () => [manifest, ...neighbours],
        platform: { newId } as never,
        instance: `test-${Math.random().toString(36).slice(2, 8)}`,
        build: 'test',
        failedPlugins: () => [],
        authority: undefined,
        processes: undefined,
        listeners: {},
      });
      made.#disposals.push(
        () => relay[Symbol.asyncDispose](),
        () => instance.drain(1_000),
        () => instance[Symbol.asyncDispose](),
        () => kv[Symbol.asyncDispose](),
        () => store.close(),
      );
      return { instance, caller };
    });
    await process.instance.migrate();
    await process.instance.setUp();
    await process.instance.start(new AbortController().signal);
    return process;
  }

  /** Any route, through gate, validation and the check of its answer; refusals are thrown. */
  async call(
    operation: string,
    as: Caller,
    {
      body,
      query = {},
      params = {},
      headers = {},
      signal = new AbortController().signal,
    }: {
      body?: unknown;
      query?: Record<string, unknown>;
      params?: Record<string, string>;
      headers?: Record<string, string>;
      signal?: AbortSignal;
    } = {},
  ): Promise<Outgoing> {
    return this.instance.app.call(operation, {
      params,
      query,
      headers,
      identity: async () => identityOf(as),
      body: async () => body,
      correlationId: 'c-test',
      signal: () => signal,
      ip: '127.0.0.1',
      hostname: '',
      tenant: {},
      peer: undefined,
    });
  }

  async produce(
    as: Caller,
    envId: string,
    n: number,
    more: Record<string, unknown> = {},
  ): Promise<{ message_id: string; stream: string; replayed: boolean }> {
    const { value, headers } = await this.call('produce', as, {
      body: { event_type: `${as.vertical}:shop:order:created`, env_id: envId, stream_family: 'app', payload: { n }, ...more },
    });
    return { ...(value as { message_id: string; stream: string }), replayed: headers['Idempotent-Replay'] === 'true' };
  }

  async consume(as: Caller, body: Record<string, unknown>, signal?: AbortSignal): Promise<Entry[]> {
    const { value } = await this.call('consume', as, {
      body: { stream_family: 'app', consumer_group: 'g', count: 100, ...body },
      ...(signal ? { signal } : {}),
    });
    return (value as { entries: Entry[] }).entries;
  }

  /** Consumes and acknowledges until nothing is left. */
  async drain(as: Caller, body: Record<string, unknown>): Promise<Entry[]> {
    const all: Entry[] = [];
    for (;;) {
      const entries = await this.consume(as, body);
      if (entries.length === 0) return all;
      all.push(...entries);
      for (const { env_id, message_id } of entries)
        await this.call('ack', as, { body: { stream_family: 'app', consumer_group: 'g', ...pick(body), env_id, message_id } });
    }
  }

  /** A door on the loopback whose bearer token is the caller itself. */
  async listen(): Promise<string> {
    this.#server = createServer((req, res) => this.instance.app.handle(req, res));
    const { promise, resolve } = Promise.withResolvers<void>();
    this.#server.listen(0, '127.0.0.1', resolve);
    await promise;
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#server?.closeAllConnections();
    this.#server?.close();
    for (const dispose of this.#disposals) await dispose();
  }
}

const pick = ({ stream_family, consumer_group }: Record<string, unknown>): Record<string, unknown> => ({
  ...(stream_family ? { stream_family } : {}),
  ...(consumer_group ? { consumer_group } : {}),
});
export const bearer = (caller: Caller): string => `Bearer ${Buffer.from(JSON.stringify(caller)).toString('base64url')}`;

let made = 0;
/** An environment no other test uses. */
export const newEnv = (): string => `00000000-0000-7000-8000-${String(++made).padStart(12, '0').replace(/^0/, 'e')}`;
