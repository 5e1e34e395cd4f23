import { isProblem, isUnavailable, type KeyValue, type LivingService, type Logger, StoreAbsent, platformHost } from '@platform/sdk';
import { systemClock } from '../../base/clock.ts';
import { DisposalStack } from '../../base/disposal-stack.ts';
import type { Manifest } from '../../base/manifest.ts';
import type { Authority } from '../../identity/certificates/trust-anchors.ts';
import { Workload } from '../../identity/workload.ts';
import { BackendPools } from '../../routing/backend-pools.ts';
import { Directory } from '../../routing/directory.ts';
import { type CallInput, ServiceCaller } from '../../routing/service-caller.ts';
import { connectKeyValue } from '../../storage/key-value.ts';
import { openLog, type Telemetry } from '../../telemetry/log.ts';
import { type Bootstrap, HOST_WORKLOAD, workloadGrants } from '../boot/bootstrap.ts';
import { LiveCatalog } from '../context/live-catalog.ts';
import { ask, livingServices } from '../platform-calls.ts';
import { directoryStore, keyValuePort } from '../service/key-value-port.ts';
import { mintFor } from './enrollment/mint.ts';

/**
 * The host as a caller of services: it says who the verticals it starts are, because they must not say so themselves (day-one, Plugins).
 */
export class HostWorkload implements AsyncDisposable {
  readonly log: Logger;
  readonly kv: KeyValue;
  readonly #caller: ServiceCaller;
  readonly #workload: Workload;
  readonly #owned: DisposalStack;

  private constructor(parts: { log: Logger; kv: KeyValue; caller: ServiceCaller; workload: Workload; owned: DisposalStack }) {
    this.log = parts.log;
    this.kv = parts.kv;
    this.#caller = parts.caller;
    this.#workload = parts.workload;
    this.#owned = parts.owned;
  }

  static async open({
    bootstrap,
    authority,
    log: telemetry,
  }: {
    bootstrap: Bootstrap;
    authority: Authority | undefined;
    log: Telemetry | undefined;
  }): Promise<HostWorkload> {
    const owned = new DisposalStack();
    const opened =
      telemetry ??
      openLog({
        level: bootstrap.logLevel,
        directory: `${bootstrap.dataDir}/logs`,
        build: bootstrap.build,
        pretty: false,
        process: 'host',
      });
    const log = opened.logger('host');
    const store = owned.own(await connectKeyValue(bootstrap.keyValueUrl));
    const kv = owned.own(await keyValuePort(store));
    const directory = owned.own(new Directory(directoryStore(kv), log));
    const pools = owned.own(
      new BackendPools(directory, service => platformHost(service, bootstrap.domain), { log, limits: bootstrap.backends }),
    );
    const workload = await Workload.open({
      name: HOST_WORKLOAD,
      directory: `${bootstrap.dataDir}/keys`,
      anchors: bootstrap.anchors,
      pqMode: bootstrap.pqMode,
      hostnames: [],
      kinds: ['client'],
      mint: mintFor({ bootstrap, directory, ...(authority ? { authority } : {}) }),
    });
    return new HostWorkload({ log, kv, caller: new ServiceCaller(pools), workload, owned });
  }

  /** Tells the identity service what a vertical's workloads may do: what its contract says, no more. */
  async registerWorkload(manifest: Manifest): Promise<void> {
    const grants = workloadGrants([manifest]);
    for (const [name, { vertical, scopes }] of grants) {
      if (name === HOST_WORKLOAD) continue;
      const body = { vertical, scopes: [...scopes] };
      await ask(this.#caller, this.#workload, 'auth', 'putWorkload', { params: { name }, body });
    }
  }

  /** Tells the bus which events a vertical's service declares. Without the bus nothing is published either, so the vertical may start. */
  async registerEvents({ id, vertical, version, events }: Manifest): Promise<void> {
    const schemas = Object.fromEntries(Object.entries(events).map(([name, { payload }]) => [name, payload]));
    const body = { service: id, vertical, version, events: schemas };
    await ask(this.#caller, this.#workload, 'bus', 'keepEventContract', { params: { service: id }, body }).catch(error =>
      this.log.warn({ service: id, err: error }, 'the bus does not know which events this service declares; they are not checked'),
    );
  }

  /**
   * Tells the registry that this machine has a plugin. Throws `StoreAbsent` for one that somebody took out: it is tried again when it was
   * brought back. A registry that is away stops nobody.
   */
  async found({ id, title, vertical, version }: Manifest): Promise<void> {
    const body = { vertical, version, label: title };
    const answer = await ask(this.#caller, this.#workload, 'sys', 'findVertical', { params: { service: id }, body }).catch(error => {
      // A registry of an older release does not know the question: while it is replaced, verticals start all the same.
      if (!isUnavailable(error) && !(isProblem(error) && error.status === 404)) throw error;
      this.log.warn({ service: id, err: error }, 'the registry does not know yet that this machine has the plugin');
    });
    const { life } = (answer ?? {}) as Partial<LivingService>;
    if (life === 'draining' || life === 'gone')
      throw new StoreAbsent(`${id} was taken out. Bring it back on the page Verticals of the registry to have it run.`);
  }

  /** Does something with the registered services, now and whenever they change. */
  followServices(work: (services: readonly LivingService[]) => void): AsyncDisposable {
    const { log, kv } = this;
    const catalog = new LiveCatalog({ read: signal => livingServices(this.#caller, this.#workload, signal), kv, clock: systemClock, log });
    catalog.follow(work);
    return catalog;
  }

  /** What a look at a service is sent with. */
  clientTls(): ReturnType<Workload['clientTls']> {
    return this.#workload.clientTls();
  }

  /** A request to a service by its wire path. */
  call(service: string, method: 'GET' | 'POST', path: string, input: CallInput): Promise<unknown> {
    return this.#caller.call(this.#workload, { service, name: `${method} ${path}`, route: { method, path }, problems: {} }, input);
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.#owned[Symbol.asyncDispose]();
  }
}
