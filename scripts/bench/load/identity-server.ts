import { randomBytes } from 'node:crypto';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { eventBus } from '@platform/event-bus/contract';
import { gateway } from '@platform/gateway/contract';
import { identity } from '@platform/identity/contract';
import { DisposalStack } from '@platform/kernel/base/disposal-stack';
import { connectKeyValue, type KeyValue } from '@platform/kernel/storage/key-value';
import { PostgresPool } from '@platform/kernel/storage/postgres/postgres-pool';
import { roleOf, schemaOf } from '@platform/kernel/storage/schema/service-schema';
import { registry } from '@platform/registry/contract';
import { SYSTEM } from '@platform/sdk';
import { openTestStores, type TestStores, TokenMint } from '@platform/testing';
import { Pool } from 'undici';
import { orderOf } from '../../fleet/process-order.ts';
import { ServiceChild } from '../../fleet/service-child.ts';

const CONNECTIONS = 16;
/** Brakes on guessing are not what is measured: their counters start this far below. */
const ALLOWANCE = -100_000_000;

export interface Answer {
  readonly status: number;
  readonly headers: Readonly<Record<string, string | string[] | undefined>>;
  readonly text: string;
}

/** The identity service in a process of its own over real stores, reached over mutual TLS as any workload. */
export class IdentityServer implements AsyncDisposable {
  readonly host = 'auth.ops.sys.localhost';
  readonly #owned: DisposalStack;
  readonly #stores: TestStores;
  readonly #child: ServiceChild;
  readonly #kv: KeyValue;
  readonly tables: PostgresPool;
  readonly #pools = new Map<string, Promise<Pool>>();

  private constructor(parts: { owned: DisposalStack; stores: TestStores; child: ServiceChild; kv: KeyValue; tables: PostgresPool }) {
    this.#owned = parts.owned;
    this.#stores = parts.stores;
    this.#child = parts.child;
    this.#kv = parts.kv;
    this.tables = parts.tables;
  }

  static async start(environment: Readonly<Record<string, string>> = {}): Promise<IdentityServer> {
    const owned = new DisposalStack();
    try {
      const stores = owned.own(await openTestStores());
      const { dataDir, authority } = stores;
      await stores.stores.ensureService('auth');
      const key = join(dataDir, 'bench.kek');
      writeFileSync(key, randomBytes(32).toString('base64'), { mode: 0o600 });
      const order = orderOf({
        service: 'auth',
        dataDir,
        authority,
        database: stores.stores.database,
        keyValueUrl: stores.stores.keyValueUrl,
        contracts: [identity, registry, gateway, eventBus],
        jwks: new TokenMint().jwks,
        environment: { PLATFORM_AUTH_KEY_ENCRYPTION_REF: `file://${key}`, ...environment },
        withoutBus: true,
        alone: true,
      });
      const child = new ServiceChild(order, authority.pq.files.rootCertificate);
      owned.defer(() => child.stop());
      await child.start();
      const { host, port: databasePort, database } = stores.stores.database;
      const leaf = await authority.classical.issue({ commonName: 'svc.auth', names: [], usages: ['client'], days: 1 });
      const ssl = {
        ca: authority.classical.files.rootCertificate,
        cert: leaf.chain,
        key: leaf.key as string,
        servername: 'postgres.platform.internal',
      };
      const tables = owned.own(
        new PostgresPool({ host, port: databasePort, database, user: roleOf('auth'), schema: schemaOf('auth'), ssl }),
      );
      const kv = owned.own(await connectKeyValue(stores.stores.keyValueUrl));
      const server = new IdentityServer({ owned, stores, child, kv, tables });
      await server.#allow();
      return server;
    } catch (error) {
      await owned[Symbol.asyncDispose]();
      throw error;
    }
  }

  /** As a workload, or as the ingress brings a browser to a host. */
  async send(
    workload: string,
    path: string,
    init: { method?: 'GET' | 'POST'; body?: string; headers?: Record<string, string>; hostname?: string } = {},
  ): Promise<Answer> {
    const { method = 'POST', body, headers = {}, hostname } = init;
    const answer = await (await this.#poolOf(workload)).request({
      method,
      path,
      headers: { host: this.host, ...(hostname ? { 'x-platform-service': 'auth', 'x-platform-hostname': hostname } : {}), ...headers },
      ...(body === undefined ? {} : { body }),
    });
    return { status: answer.statusCode, headers: answer.headers, text: await answer.body.text() };
  }

  form(workload: string, path: string, fields: Record<string, string>): Promise<Answer> {
    return this.send(workload, path, {
      body: new URLSearchParams(fields).toString(),
      headers: { 'content-type': 'application/x-www-form-urlencoded' },
    });
  }

  /** Microseconds of CPU of the serving process, all its threads and those of its pool, and its resident bytes. */
  async usage(): Promise<{ cpuUs: number; workersUs: number | undefined; rss: number }> {
    const { cpu, workersUs, rss } = await this.#child.usage();
    return { cpuUs: cpu.user + cpu.system, workersUs, rss };
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const pool of this.#pools.values()) await (await pool).destroy();
    await this.#owned[Symbol.asyncDispose]();
  }

  #poolOf(workload: string): Promise<Pool> {
    const known = this.#pools.get(workload);
    if (known) return known;
    const made = this.#stores.authority.pq
      .issue({ commonName: `m2m-${workload}`, names: [`uri:urn:platform:workload:${workload}`], usages: ['client'], days: 1 })
      .then(
        ({ chain, key }) =>
          new Pool(`https://127.0.0.1:${this.#child.port}`, {
            connections: CONNECTIONS,
            connect: {
              ca: this.#stores.authority.pq.files.rootCertificate,
              cert: chain,
              key: key as string,
              servername: this.host,
              minVersion: 'TLSv1.3',
              ecdhCurve: 'X25519MLKEM768',
            },
          }),
      );
    this.#pools.set(workload, made);
    return made;
  }

  async #allow(): Promise<void> {
    for (const key of [...['bff', 'console'].map(client => `auth:rate:token:${SYSTEM.envId}:${client}`), 'auth:rate:sign-in:127.0.0.1'])
      await this.#kv.client.call('SET', key, String(ALLOWANCE), 'EX', '3600');
  }
}
