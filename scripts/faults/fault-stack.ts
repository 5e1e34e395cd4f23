import { createHash, X509Certificate } from 'node:crypto';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { eventBus } from '@platform/event-bus/contract';
import { DisposalStack } from '@platform/kernel/base/disposal-stack';
import { type Authority, openAuthority } from '@platform/kernel/identity/certificates/trust-anchors';
import { type EmbeddedPostgres, startEmbeddedPostgres } from '@platform/kernel/storage/postgres/embedded-postgres';
import { type EmbeddedValkey, startEmbeddedValkey } from '@platform/kernel/storage/valkey/embedded-valkey';
import { isAlive, type ProcessRecord, recordOf } from '@platform/kernel/storage/process-record';
import { ensureServiceSchema } from '@platform/kernel/storage/schema/service-schema';
import { defineContract, event, Type } from '@platform/sdk/contract';
import { as, TokenMint } from '@platform/testing';
import { Pool } from 'undici';
import { orderOf } from '../fleet/process-order.ts';
import { ServiceChild } from '../fleet/service-child.ts';
import { CuttingProxy } from '../../sdk/testing/servers/cutting-proxy.ts';
import { ShopChild } from './shop-child.ts';
import { SmallDisk } from './small-disk.ts';

const shop = defineContract({
  id: 'shop',
  title: 'Shop',
  placement: { tier: 50 },
  uses: { bus: ['bus:produce', 'bus:consume', 'bus:read'] },
  actions: {},
  problems: {},
  events: { 'platform:shop:order:created': event('An order', Type.Object({ producer: Type.String(), n: Type.Integer() })) },
  routes: {},
});
const BUSES = 2;
const CONNECTIONS = 8;
const ANSWER_MS = 5_000;

/** Two bus processes, a producer with an outbox and both databases, each a process that can be killed, behind proxies that can cut. */
export class FaultStack implements AsyncDisposable {
  readonly buses: readonly ServiceChild[];
  readonly proxies: readonly CuttingProxy[];
  readonly shop: ShopChild;
  readonly valkey: EmbeddedValkey;
  /** What the data lie on, where it is one that can be filled. */
  readonly disk: SmallDisk | undefined;
  readonly #pools: readonly Pool[];
  readonly #owned: DisposalStack;
  readonly #startPostgres: () => Promise<EmbeddedPostgres>;
  readonly #headers: Readonly<Record<string, string>>;
  #postgres: EmbeddedPostgres;
  #postgresRecord: ProcessRecord;

  private constructor(
    owned: DisposalStack,
    parts: Pick<FaultStack, 'buses' | 'proxies' | 'shop' | 'valkey' | 'disk'> & {
      pools: readonly Pool[];
      headers: Record<string, string>;
      postgres: EmbeddedPostgres;
      startPostgres: () => Promise<EmbeddedPostgres>;
    },
  ) {
    this.#owned = owned;
    this.buses = parts.buses;
    this.proxies = parts.proxies;
    this.shop = parts.shop;
    this.valkey = parts.valkey;
    this.disk = parts.disk;
    this.#pools = parts.pools;
    this.#headers = parts.headers;
    this.#postgres = parts.postgres;
    this.#postgresRecord = recordOf(parts.postgres.pid);
    this.#startPostgres = parts.startPostgres;
  }

  /** With `small`, the data lie on a disk of so many megabytes. */
  static async start({ small }: { small?: number } = {}): Promise<FaultStack> {
    const owned = new DisposalStack();
    try {
      const disk = small === undefined ? undefined : new SmallDisk(small);
      if (disk) owned.defer(() => disk[Symbol.dispose]());
      const dataDir = mkdtempSync(join(disk?.directory ?? tmpdir(), 'platform-faults-'));
      owned.defer(() => rmSync(dataDir, { recursive: true, force: true }));
      const authority = await openAuthority(dataDir);
      const startPostgres = await postgresOf(authority, dataDir);
      const postgres = await startPostgres();
      const valkey = await startEmbeddedValkey({ dataDir });
      owned.defer(() => valkey.stop());
      for (const service of ['bus', 'shop']) await ensureServiceSchema(postgres.admin(), service);
      const database = { host: postgres.host, port: postgres.port, database: postgres.database };
      const mint = new TokenMint();
      const order = orderOf({
        service: 'bus',
        dataDir,
        authority,
        database,
        keyValueUrl: valkey.url,
        contracts: [eventBus, shop],
        jwks: mint.jwks,
        alone: true,
      });
      const buses = Array.from({ length: BUSES }, () => new ServiceChild(order, authority.pq.files.rootCertificate, { revived: true }));
      for (const bus of buses) {
        await bus.start();
        owned.defer(() => bus.stop());
      }
      const proxies = await Promise.all(buses.map(bus => CuttingProxy.start(() => bus.port)));
      for (const proxy of proxies) owned.own(proxy);
      const { tls, headers } = await shopAtBus(authority, mint);
      const pools = proxies.map(
        ({ port }) =>
          new Pool(`https://127.0.0.1:${port}`, {
            connections: CONNECTIONS,
            headersTimeout: ANSWER_MS,
            bodyTimeout: ANSWER_MS,
            connect: { ...tls, timeout: ANSWER_MS, minVersion: 'TLSv1.3' },
          }),
      );
      for (const pool of pools) owned.defer(() => pool.destroy());
      const shopChild = new ShopChild({
        database,
        ssl: await shopAtDatabase(authority),
        ports: proxies.map(({ port }) => port),
        tls,
        headers,
      });
      await shopChild.start();
      owned.defer(() => shopChild.kill());
      const stack = new FaultStack(owned, { buses, proxies, shop: shopChild, valkey, disk, pools, headers, postgres, startPostgres });
      // First of all that was opened, last to go: everything else writes to it while it ends.
      owned.defer(() => stack.#postgres.stop());
      return stack;
    } catch (error) {
      await owned[Symbol.asyncDispose]();
      throw error;
    }
  }

  /** Asks one of the buses, through its proxy. Throws when nobody knows whether it was done. */
  async ask(turn: number, path: string, body: object): Promise<{ status: number; json: Record<string, unknown> }> {
    const pool = this.#pools[turn % this.#pools.length] as Pool;
    const { statusCode, body: answer } = await pool.request({ method: 'POST', path, headers: this.#headers, body: JSON.stringify(body) });
    return { status: statusCode, json: (await answer.json()) as Record<string, unknown> };
  }

  /** The database dies as in a power cut of its machine, and is started again. */
  async killPostgres(): Promise<void> {
    process.kill(this.#postgres.pid, 'SIGKILL');
    while (isAlive(this.#postgresRecord)) await delay(10);
    await this.#restartPostgres();
  }

  /** Starts the database again if it has ended by itself. */
  async revivePostgres(): Promise<void> {
    if (!isAlive(this.#postgresRecord)) await this.#restartPostgres();
  }

  async #restartPostgres(): Promise<void> {
    const { port } = this.#postgres;
    this.#postgres = await this.#startPostgres();
    if (this.#postgres.port !== port) throw new Error('somebody took the port of the database while it was down; run this seed again');
    this.#postgresRecord = recordOf(this.#postgres.pid);
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.#owned[Symbol.asyncDispose]();
  }
}

/** Starts the database, and starts it again after it died, on the same files. */
async function postgresOf(authority: Authority, dataDir: string): Promise<() => Promise<EmbeddedPostgres>> {
  const leaf = await authority.classical.issue({
    commonName: 'postgres.platform.internal',
    names: ['dns:postgres.platform.internal', 'ip:127.0.0.1'],
    usages: ['server'],
    days: 1,
  });
  return () =>
    startEmbeddedPostgres({
      dataDir,
      tls: { ca: authority.classical.files.rootCertificate, cert: leaf.chain, key: leaf.key as string },
      progress: () => {},
    });
}

/** What the shop shows at the buses: its certificate, and a token that is bound to it. */
async function shopAtBus(authority: Authority, mint: TokenMint) {
  const workload = await authority.pq.issue({
    commonName: 'm2m-shop',
    names: ['uri:urn:platform:workload:shop'],
    usages: ['client'],
    days: 1,
  });
  const thumbprint = createHash('sha256').update(new X509Certificate(workload.chain).raw).digest('base64url');
  const token = mint.token(as.machine('shop', 'bus:produce', 'bus:consume', 'bus:read'), 'bus', {
    cnf: { 'x5t#S256': thumbprint },
    exp: Math.floor(Date.now() / 1_000) + 86_400,
  });
  const tls = {
    cert: workload.chain,
    key: workload.key as string,
    ca: authority.pq.files.rootCertificate,
    servername: 'bus.ops.sys.localhost',
  };
  const headers = { host: 'bus.ops.sys.localhost', 'content-type': 'application/json', authorization: `Bearer ${token}` };
  return { tls, headers };
}

async function shopAtDatabase(authority: Authority) {
  const login = await authority.classical.issue({ commonName: 'svc.shop', names: [], usages: ['client'], days: 1 });
  return {
    ca: authority.classical.files.rootCertificate,
    cert: login.chain,
    key: login.key as string,
    servername: 'postgres.platform.internal',
  };
}
