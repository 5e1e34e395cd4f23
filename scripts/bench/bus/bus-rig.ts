import { createHash, X509Certificate } from 'node:crypto';
import { eventBus } from '@platform/event-bus/contract';
import { DisposalStack } from '@platform/kernel/base/disposal-stack';
import { defineContract, event, Type } from '@platform/sdk/contract';
import { as, openTestStores, type TestStores, TokenMint } from '@platform/testing';
import { orderOf } from '../../fleet/process-order.ts';
import { ServiceChild } from '../../fleet/service-child.ts';
import { EVENT_TYPE } from './bench-event.ts';
import { BusClient } from './bus-client.ts';

/** A platform service that produces and consumes: the bus knows its workload from the manifest, as it knows every service. */
const bench = defineContract({
  id: 'bench',
  title: 'Bench',
  placement: { tier: 50 },
  uses: { bus: ['bus:produce', 'bus:consume', 'bus:read'] },
  actions: {},
  problems: {},
  events: { [EVENT_TYPE]: event('Something happened', Type.Object({ filler: Type.String(), n: Type.Optional(Type.Integer()) })) },
  routes: {},
});

/** The event bus in a process of its own, on real stores, and a workload with a bound token that may use it. */
export class BusRig implements AsyncDisposable {
  readonly bus: ServiceChild;
  readonly stores: TestStores;
  readonly client: BusClient;
  readonly #owned: DisposalStack;

  private constructor(owned: DisposalStack, parts: Pick<BusRig, 'bus' | 'stores' | 'client'>) {
    this.#owned = owned;
    this.bus = parts.bus;
    this.stores = parts.stores;
    this.client = parts.client;
  }

  static async start(): Promise<BusRig> {
    const owned = new DisposalStack();
    try {
      const stores = owned.own(await openTestStores());
      const { dataDir, authority } = stores;
      await stores.stores.ensureService('bus');
      const mint = new TokenMint();
      const ca = authority.pq.files.rootCertificate;
      const bus = new ServiceChild(
        orderOf({
          service: 'bus',
          dataDir,
          authority,
          database: stores.stores.database,
          keyValueUrl: stores.stores.keyValueUrl,
          contracts: [eventBus, bench],
          jwks: mint.jwks,
          alone: true,
        }),
        ca,
      );
      await bus.start();
      owned.defer(() => bus.stop());
      const leaf = await authority.pq.issue({
        commonName: 'm2m-bench',
        names: ['uri:urn:platform:workload:bench'],
        usages: ['client'],
        days: 1,
      });
      const thumbprint = createHash('sha256').update(new X509Certificate(leaf.chain).raw).digest('base64url');
      const token = mint.token(as.machine('bench', 'bus:produce', 'bus:consume', 'bus:read'), 'bus', {
        cnf: { 'x5t#S256': thumbprint },
        exp: Math.floor(Date.now() / 1_000) + 7_200,
      });
      const credentials = { cert: leaf.chain, key: leaf.key as string, ca };
      const client = owned.own(new BusClient({ port: bus.port, hostname: bus.hostname, credentials, authorization: `Bearer ${token}` }));
      return new BusRig(owned, { bus, stores, client });
    } catch (error) {
      await owned[Symbol.asyncDispose]();
      throw error;
    }
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.#owned[Symbol.asyncDispose]();
  }
}
