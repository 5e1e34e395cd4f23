import { randomBytes } from 'node:crypto';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { identity } from '@platform/identity/contract';
import { DisposalStack } from '@platform/kernel/base/disposal-stack';
import { newId } from '@platform/kernel/base/ids';
import { PostgresPool } from '@platform/kernel/storage/postgres/postgres-pool';
import { roleOf, schemaOf } from '@platform/kernel/storage/schema/service-schema';
import { registry } from '@platform/registry/contract';
import { SYSTEM } from '@platform/sdk';
import { openTestStores, type Persona, type TestStores, TokenMint } from '@platform/testing';
import { orderOf, type ProcessOrder } from '../../fleet/process-order.ts';
import { ServiceChild } from '../../fleet/service-child.ts';

const TOKEN_MS = 600_000;
/** Of 50 ms each: two minutes. */
const SETTLING_TURNS = 2_400;

/** Two registry processes and an identity process on one database, with people who may found organizations. */
export class RegistryFleet implements AsyncDisposable {
  readonly registries: readonly [ServiceChild, ServiceChild];
  readonly #owned = new DisposalStack();
  readonly #stores: TestStores;
  readonly #mint = new TokenMint();
  readonly #environment: Readonly<Record<string, string>>;
  readonly #tokens = new Map<string, { token: string; at: number }>();

  private constructor(stores: TestStores) {
    this.#stores = this.#owned.own(stores);
    const key = join(stores.dataDir, 'bench.kek');
    writeFileSync(key, randomBytes(32).toString('base64'), { mode: 0o600 });
    this.#environment = {
      PLATFORM_AUTH_KEY_ENCRYPTION_REF: `file://${key}`,
      PLATFORM_SYS_KEY_ENCRYPTION_REF: `file://${key}`,
      PLATFORM_SYS_AUDIT_KEY_REF: `file://${key}`,
    };
    this.registries = [this.#child('sys'), this.#child('sys')];
  }

  static async start(): Promise<RegistryFleet> {
    const fleet = new RegistryFleet(await openTestStores());
    try {
      for (const service of ['auth', 'sys']) await fleet.#stores.stores.ensureService(service);
      const members = [fleet.#child('auth'), ...fleet.registries];
      for (const member of members) {
        await member.start();
        fleet.#owned.defer(() => member.stop());
      }
      return fleet;
    } catch (error) {
      await fleet[Symbol.asyncDispose]();
      throw error;
    }
  }

  #child(service: ProcessOrder['service']): ServiceChild {
    const { dataDir, authority, stores } = this.#stores;
    const { database, keyValueUrl } = stores;
    const order = orderOf({
      service,
      dataDir,
      authority,
      database,
      keyValueUrl,
      contracts: [identity, registry],
      jwks: this.#mint.jwks,
      environment: this.#environment,
      withoutBus: true,
    });
    return new ServiceChild(order, authority.pq.files.rootCertificate);
  }

  /** The tables of a service, as its own login sees them; the caller closes them. */
  async tables(service: string): Promise<PostgresPool> {
    const { host, port, database } = this.#stores.stores.database;
    const leaf = await this.#stores.authority.classical.issue({ commonName: `svc.${service}`, names: [], usages: ['client'], days: 1 });
    const ssl = {
      ca: this.#stores.authority.classical.files.rootCertificate,
      cert: leaf.chain,
      key: leaf.key as string,
      servername: 'postgres.platform.internal',
    };
    return new PostgresPool({ host, port, database, user: roleOf(service), schema: schemaOf(service), ssl });
  }

  /** People with an account and the right to found organizations, and nothing else. */
  async founders(count: number): Promise<Persona[]> {
    const scopes = ['sys:read', 'sys:org:admin', 'sys:env:admin'];
    const people = Array.from(
      { length: count },
      (): Persona => ({ kind: 'user', id: newId(), envId: SYSTEM.envId, scopes, email: 'founder@example.org', vertical: 'platform' }),
    );
    await using tables = await this.tables('auth');
    const { sql } = tables;
    const ids = people.map(({ id }) => id);
    await sql`insert into roles (env_id, name) values (${SYSTEM.envId}, 'bench:founder') on conflict do nothing`;
    await sql`insert into role_scopes (env_id, role, scope) select ${SYSTEM.envId}, 'bench:founder', unnest(${scopes}::text[])
      on conflict do nothing`;
    await sql`insert into users (user_id, env_id, email, email_ci, email_verified)
      select id, ${SYSTEM.envId}, id || '@example.org', id || '@example.org', true from unnest(${ids}::uuid[]) id`;
    await sql`insert into user_roles (env_id, user_id, role) select ${SYSTEM.envId}, id, 'bench:founder' from unnest(${ids}::uuid[]) id`;
    return people;
  }

  /** Until the relays have carried what was committed, so that a row is not measured under what the row before it left. */
  async settled(): Promise<void> {
    for (const service of ['auth', 'sys']) {
      await using tables = await this.tables(service);
      for (
        let turn = 0;
        (await tables.sql`select 1 from outbox where not relayed and not parked and hold is null limit 1`).length > 0;
        turn++
      ) {
        if (turn === SETTLING_TURNS) throw new Error(`the outbox of ${service} is not carried`);
        await delay(50);
      }
    }
  }

  tokenOf(person: Persona): string {
    const known = this.#tokens.get(person.id);
    if (known && Date.now() - known.at < TOKEN_MS) return known.token;
    const token = this.#mint.token(person, 'sys');
    this.#tokens.set(person.id, { token, at: Date.now() });
    return token;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#owned[Symbol.asyncDispose]();
  }
}
