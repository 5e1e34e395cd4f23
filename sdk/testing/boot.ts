import type { IncomingMessage } from 'node:http';
import { type AnyContract, type AnyPlugin, type Client, platformHost } from '@platform/sdk';
import { ManualClock } from '@platform/kernel/base/clock';
import { DisposalStack } from '@platform/kernel/base/disposal-stack';
import { type Manifest, manifestOf } from '@platform/kernel/base/manifest';
import { PlatformProcess } from '@platform/kernel/host/platform-process';
import type { ServiceInstance } from '@platform/kernel/host/service/service-instance';
import type { Outgoing } from '@platform/kernel/http/operation-call';
import type { PostgresPool } from '@platform/kernel/storage/postgres/postgres-pool';
import { currentScope } from '@platform/kernel/telemetry/request-scope';
import { parseScopes } from '@platform/kernel/identity/tokens/scope-name';
import { anchorsOf } from '@platform/kernel/identity/certificates/trust-anchors';
import { callerOf } from './calls/caller-of.ts';
import type { BootOptions } from './boot-options.ts';
import { Coverage } from './coverage.ts';
import { CuttingProxy } from './servers/cutting-proxy.ts';
import type { DoorRequest } from './calls/door-request.ts';
import { type DirectCaller, directCall, type DirectInput, peerOf } from './calls/direct-call.ts';
import { loadedPlugin } from './loaded-plugin.ts';
import { type LogLine, readLog } from './log-lines.ts';
import { environmentOf, type Persona, TokenMint } from './persona.ts';
import { stubbedServices } from './stubbed-services.ts';
import { relayedEvents } from './stores/relayed-events.ts';
import { servicePool } from './stores/service-pool.ts';
import { type DeliveryOptions, type SeenEvent, TestBus } from './test-bus.ts';
import { type WireAnswer, type WireRequest, wireAnswer, wireRequest } from './calls/wire-request.ts';
import { openTestStores, type TestStores } from './stores/stores.ts';

/** A plugin under the real kernel: real database, real store, real TLS; only the other services are stubs. */
export class BootedHost<C extends AnyContract> implements AsyncDisposable {
  readonly clock = new ManualClock(Date.now());
  readonly mint = new TokenMint(() => this.clock.now().getTime());
  readonly manifest: Manifest;
  readonly audits: Readonly<Record<string, unknown>>[] = [];
  process!: PlatformProcess;
  stores!: TestStores;
  readonly #personas = new Map<string, Persona>();
  readonly #owned = new DisposalStack();
  /** By service: the one under test, and those beside it. */
  readonly #coverages = new Map<string, Coverage>();
  readonly #events: TestBus;
  /** Whether what was seen has been left for the sum of all test files. */
  #left = false;
  #pool: PostgresPool | undefined;
  #relays: Readonly<Record<'database' | 'key-value', CuttingProxy>> | undefined;

  private constructor(plugin: AnyPlugin) {
    this.manifest = manifestOf(plugin.contract, '0.0.0-test');
    this.#coverages.set(this.manifest.id, new Coverage(this.manifest));
    this.#events = new TestBus(this.manifest, name => this.coverage.emitted(name));
  }

  static async start<C extends AnyContract, U extends Readonly<Record<string, AnyContract>>>(
    plugin: AnyPlugin,
    options: BootOptions<U>,
  ): Promise<BootedHost<C>> {
    const host = new BootedHost<C>(plugin);
    try {
      await host.#start(plugin, options as BootOptions<Readonly<Record<string, AnyContract>>>);
      return host;
    } catch (error) {
      await host.#owned[Symbol.asyncDispose]().catch(() => undefined);
      throw error;
    }
  }

  async #start(plugin: AnyPlugin, options: BootOptions<Readonly<Record<string, AnyContract>>>): Promise<void> {
    this.stores = options.stores ?? this.#owned.own(await openTestStores());
    const { dataDir, authority, stores } = this.stores;
    const services = [{ plugin: plugin as object, environment: options.environment }, ...(options.beside ?? [])].map(
      ({ plugin: each, environment = {} }) => loadedPlugin(each as AnyPlugin, environment),
    );
    for (const { manifest } of services) {
      if (!this.#coverages.has(manifest.id)) this.#coverages.set(manifest.id, new Coverage(manifest));
      await stores.ensureService(manifest.id);
    }
    this.process = await PlatformProcess.start({
      bootstrap: {
        domain: 'localhost',
        production: false,
        dataDir,
        build: 'test',
        logLevel: options.logLevel ?? 'warn',
        edgePort: 8443,
        pqMode: 'strict',
        anchors: anchorsOf(authority),
        ...(await this.#addresses(options.partable ?? false)),
        manifests: [...services.map(({ manifest }) => manifest), ...(options.manifests ?? [])],
        enrollment: {},
      },
      services,
      authority,
      ...(options.processes ? { processes: options.processes } : {}),
      clock: this.clock,
      processName: `test-${this.manifest.id}`,
      pretty: true,
      locals: stubbedServices(
        plugin,
        options.stubs ?? {},
        { real: [...services.map(({ manifest }) => manifest.id), ...(options.elsewhere ?? [])], away: options.away ?? false },
        { personas: this.#personas, audits: this.audits, bus: this.#events.operations as never },
      ),
      jwks: async () => this.mint.jwks,
      issuers: async issuer => environmentOf(issuer),
      seen: service => (operation, status, problem) => this.#coverages.get(service)?.seen(operation, status, problem, currentScope()),
    });
    this.#owned.own(this.process);
  }

  async #addresses(partable: boolean): Promise<{ database: TestStores['stores']['database']; keyValueUrl: string }> {
    const { database, keyValueUrl } = this.stores.stores;
    if (!partable) return { database, keyValueUrl };
    const url = new URL(keyValueUrl);
    const [toDatabase, toKeyValue] = [await CuttingProxy.start(() => database.port), await CuttingProxy.start(() => Number(url.port))];
    for (const proxy of [toDatabase, toKeyValue]) this.#owned.own(proxy);
    this.#relays = { database: toDatabase, 'key-value': toKeyValue };
    return { database: { ...database, port: toDatabase.port }, keyValueUrl: keyValueUrl.replace(`:${url.port}`, `:${toKeyValue.port}`) };
  }

  /** Cuts the service off from a store, or lets it reach it again. Only of a host that was booted `partable`. */
  part(store: 'database' | 'key-value', parted: boolean): void {
    if (!this.#relays) throw new Error('boot it with `partable` to cut it off from its stores');
    this.#relays[store].part(parted);
  }

  /** The identity service knows the rights of these; it knows those of a persona that calls anyhow. */
  know(...personas: readonly Persona[]): void {
    for (const persona of personas) this.#personas.set(persona.id, persona);
  }

  /** Calls as somebody, through the gate, without a wire. */
  by(persona: Persona): Client<C> {
    this.know(persona);
    const identity = async () => ({ principal: persona.kind, scopes: parseScopes(persona.scopes.join(' ')), caller: callerOf(persona) });
    return new Proxy({} as Client<C>, {
      get:
        (_, name: string) =>
        async (input: DirectInput = {}) =>
          (await this.#direct(name, persona, identity, input)).value,
    });
  }

  /**
   * Calls an operation with a real token, which the process's own verifier reads, without a wire. The answer has its status and headers. A
   * workload comes with its certificate; `token` is shown in place of the persona's own.
   */
  call(
    name: string,
    persona: Persona,
    { token = this.mint.current(persona, this.manifest.id), ...input }: DirectInput & { token?: string } = {},
  ) {
    const { verifier } = this.process;
    const peer = peerOf(persona);
    const service = this.manifest.id;
    const identity = () => verifier.verify({ authorization: `Bearer ${token}`, peer, service, tenantEnvId: undefined });
    return this.#direct(name, persona, identity, input);
  }

  async #direct(name: string, persona: Persona, identity: DirectCaller['identity'], input: DirectInput): Promise<Outgoing> {
    this.know(persona);
    const service = this.manifest.id;
    const { app } = this.process.instances.get(service) as ServiceInstance;
    return directCall(app, name, input, {
      caller: { identity, peer: peerOf(persona), hostname: platformHost(service, 'localhost') },
      refused: (status, code) => this.coverage.seen(name, status, code),
    });
  }

  /**
   * A request to any door over the real listener: post-quantum mutual TLS, real headers, real body. With `as` it comes from a workload,
   * with `host` and `headers` as the ingress hands one on.
   */
  async fetch(path: string, request: DoorRequest = {}): Promise<WireAnswer> {
    const { coverage } = this;
    const answer = await wireRequest(this.#door(path, request));
    coverage.answered(answer.status, answer.json);
    return answer;
  }

  /** The same, answered when the head of the answer is there: its body comes as the service sends it. Destroy it to hang up. */
  open(path: string, request: DoorRequest = {}): Promise<IncomingMessage> {
    return wireAnswer(this.#door(path, request));
  }

  #door(path: string, { method = 'GET', persona, token, headers, body, as: certificate, host, cut }: DoorRequest): WireRequest {
    if (persona) this.know(persona);
    const own = platformHost(this.manifest.id, 'localhost');
    const shown = token ?? (persona && this.mint.token(persona, this.manifest.id));
    return {
      port: this.process.port,
      path,
      method,
      servername: own,
      ca: this.stores.authority.pq.files.rootCertificate,
      minVersion: 'TLSv1.3',
      ecdhCurve: 'X25519MLKEM768',
      ...certificate,
      headers: {
        host: host ?? own,
        ...(shown ? { authorization: `Bearer ${shown}` } : {}),
        ...(typeof body === 'string' ? { 'content-type': 'application/json' } : {}),
        ...headers,
      },
      body,
      cut,
    };
  }

  /** What the processes of this service on these stores have logged, oldest first, as it stands in the file. */
  get logged(): LogLine[] {
    this.process.telemetry.flush();
    return readLog(this.stores.dataDir, `test-${this.manifest.id}`);
  }

  /** A hand in the service's tables, under its own role. */
  async sql(): Promise<PostgresPool['sql']> {
    return (await this.pool()).sql;
  }

  /** The connections behind it. They see the rows of every environment. */
  async pool(): Promise<PostgresPool> {
    this.#pool ??= this.#owned.own(await servicePool(this.stores, this.manifest.id));
    return this.#pool;
  }

  /** Certificates of a workload, as the authority of this test signs them. */
  async workload(name: string): Promise<{ cert: string; key: string }> {
    const leaf = await this.stores.authority.pq.issue({
      commonName: `m2m-${name}`,
      names: [`uri:urn:platform:workload:${name}`],
      usages: ['client'],
      days: 1,
    });
    return { cert: leaf.chain, key: leaf.key as string };
  }

  /** What this run has seen of the contract. */
  get coverage(): Coverage {
    return this.#coverages.get(this.manifest.id) as Coverage;
  }

  /** What reached the bus, oldest first. */
  get bus(): SeenEvent[] {
    return this.#events.seen;
  }

  /** While set, producing fails as an outage makes it, and so does asking for events. */
  set busAway(away: boolean) {
    this.#events.away = away;
  }

  /** Events of one name that reached the bus, waiting for at least `count` that fit. Fails after a while and says what came instead. */
  events(name: string, count?: number, fits?: (event: SeenEvent) => boolean): Promise<SeenEvent[]> {
    return this.#events.events(name, count, fits);
  }

  /** Delivers an event to the subscriptions of the contract and waits until they have handled it; a handler's error is this one's. */
  deliver(event: string, envId: string, payload: object, options?: DeliveryOptions): Promise<void> {
    return this.#events.deliver(event, envId, payload, options);
  }

  /** The families the service hears at this moment, once for each subscription, and those that its kernel hears for it. */
  get families(): string[] {
    return this.#events.families;
  }

  /** Tells the subscriptions of a family that the bus has cut events they had not read. */
  loseEvents(family: string): void {
    this.#events.lose(family);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await using _owned = this.#owned;
    // A drain sends what the outbox still holds: that is seen too.
    await this.process?.drain();
    const folder = process.env['PLATFORM_COVERAGE'];
    if (folder && this.process && !this.#left) await this.#leave(folder);
    this.#left = true;
  }

  /** With a real bus beside, or as the bus, what was emitted never came to the one of the test. */
  async #leave(folder: string): Promise<void> {
    for (const [service, coverage] of this.#coverages) {
      if (this.#coverages.has('bus')) for (const name of await relayedEvents(this.stores, service)) coverage.emitted(name);
      coverage.leave(folder);
    }
  }
}

/** Boots a plugin under the real kernel, with other services stubbed by contract. `await using` takes everything down. */
export function boot<C extends AnyContract, U extends Readonly<Record<string, AnyContract>>>(
  plugin: { readonly contract: C; readonly uses: U } & object,
  options: BootOptions<U> = {},
): Promise<BootedHost<C>> {
  return BootedHost.start<C, U>(plugin as unknown as AnyPlugin, options);
}
