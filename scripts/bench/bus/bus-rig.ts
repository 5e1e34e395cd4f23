import { createHash, X509Certificate } from 'node:crypto';
import { eventBus } from '@platform/event-bus/contract';
import { DisposalStack } from '@platform/kernel/base/disposal-stack';
import { SYSTEM } from '@platform/sdk';
import { defineContract, event, Type } from '@platform/sdk/contract';
import { as, openTestStores, type TestStores, TokenMint } from '@platform/testing';
import { Pool } from 'undici';
import { orderOf } from '../../fleet/process-order.ts';
import { ServiceChild } from '../../fleet/service-child.ts';

/** A platform service that produces and consumes: the bus knows its workload from the manifest, as it knows every service. */
const bench = defineContract({
  id: 'bench',
  title: 'Bench',
  placement: { tier: 50 },
  uses: { bus: ['bus:produce', 'bus:consume', 'bus:read'] },
  actions: {},
  problems: {},
  events: { 'platform:bench:event:sent': event('Something happened', Type.Object({ filler: Type.String(), n: Type.Optional(Type.Integer()) })) },
  routes: {},
});

export const ENV = SYSTEM.envId;
export const PAYLOAD = { filler: 'x'.repeat(240) };

/** The event bus in a process of its own, on real stores, and a workload with a bound token that may use it. */
export class BusRig implements AsyncDisposable {
  readonly bus: ServiceChild;
  readonly stores: TestStores;
  readonly credentials: { readonly cert: string; readonly key: string; readonly ca: string };
  readonly authorization: string;
  readonly #owned: DisposalStack;

  private constructor(owned: DisposalStack, parts: Pick<BusRig, 'bus' | 'stores' | 'credentials' | 'authorization'>) {
    this.#owned = owned;
    this.bus = parts.bus;
    this.stores = parts.stores;
    this.credentials = parts.credentials;
    this.authorization = parts.authorization;
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
        orderOf({ service: 'bus', dataDir, authority, database: stores.stores.database, keyValueUrl: stores.stores.keyValueUrl, contracts: [eventBus, bench], jwks: mint.jwks, alone: true }),
        ca,
      );
      await bus.start();
      owned.defer(() => bus.stop());
      const leaf = await authority.pq.issue({ commonName: 'm2m-bench', names: ['uri:urn:platform:workload:bench'], usages: ['client'], days: 1 });
      const thumbprint = createHash('sha256').update(new X509Certificate(leaf.chain).raw).digest('base64url');
      const token = mint.token(as.machine('bench', 'bus:produce', 'bus:consume', 'bus:read'), 'bus', { cnf: { 'x5t#S256': thumbprint }, exp: Math.floor(Date.now() / 1_000) + 7_200 });
      return new BusRig(owned, { bus, stores, credentials: { cert: leaf.chain, key: leaf.key as string, ca }, authorization: `Bearer ${token}` });
    } catch (error) {
      await owned[Symbol.asyncDispose]();
      throw error;
    }
  }

  /** Kept connections of the workload. */
  pool(connections: number): Pool {
    const pool = new Pool(`https://127.0.0.1:${this.bus.port}`, {
      connections,
      bodyTimeout: 0,
      connect: { ...this.credentials, servername: this.bus.hostname, minVersion: 'TLSv1.3' },
    });
    this.#owned.defer(() => pool.destroy());
    return pool;
  }

  get headers(): Record<string, string> {
    return { host: this.bus.hostname, 'content-type': 'application/json', authorization: this.authorization };
  }

  async post<T>(pool: Pool, path: string, body: object): Promise<T> {
    const { statusCode, body: answer } = await pool.request({ method: 'POST', path, headers: this.headers, body: JSON.stringify(body) });
    if (statusCode !== 200) throw new Error(`${path} answered ${statusCode}: ${await answer.text()}`);
    return (await answer.json()) as T;
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.#owned[Symbol.asyncDispose]();
  }
}
