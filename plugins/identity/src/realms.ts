import { type Cache, isId, type RequestOf, type Sql, SYSTEM } from '@platform/sdk';
import type { SignInSettings as Settings } from '../contract/schema/sign-in-settings.ts';
import type { Contract, Ctx } from './context.ts';

interface Named {
  readonly env_id: string;
  readonly org_id: string;
  readonly host: string;
}
export interface Realm extends Named, Readonly<Settings> {}

const LIMIT = 1_000;
const VERSION = 'auth:realms';
const KNOWN_MS = 30_000;
const NEGATIVE_MS = 5_000;
const UNIQUE_VIOLATION = '23505';

/**
 * Which environment signs in on which host. The system environment's is a constant, so that it is there before anybody else (IDN,
 * placement).
 */
export class Realms {
  readonly #ctx: Ctx;
  readonly #byHost: Cache<Realm | undefined>;

  constructor(ctx: Ctx) {
    this.#ctx = ctx;
    this.#byHost = ctx.cache({ max: LIMIT, ttl: realm => (realm ? KNOWN_MS : NEGATIVE_MS) });
  }

  get system(): Realm {
    const { platform, config } = this.#ctx;
    return {
      env_id: SYSTEM.envId,
      org_id: SYSTEM.orgId,
      host: platform.host('auth'),
      verify_email: true,
      wallet_sign_in: 'off',
      passkeys: config.passkeys,
      account_recovery: config.accountRecovery,
      recovery_wait_hours: config.recoveryWaitHours,
    };
  }

  async put({ params, body, caller }: RequestOf<Contract, 'putRealm'>) {
    const realm = { ...body, env_id: params.env_id, host: body.host.toLowerCase() };
    const settings = await this.#ctx.db.tx(async tx => {
      const [from] = await tx.sql<Realm[]>`select * from realms where env_id = ${realm.env_id} for update`;
      const written = await this.write(tx.sql, realm);
      const to = { host: realm.host, org_id: realm.org_id, ...written };
      const changes = Object.fromEntries(
        (Object.keys(to) as (keyof typeof to)[]).flatMap(name =>
          to[name] === from?.[name] ? [] : [[name, { from: from?.[name] ?? null, to: to[name] }]],
        ),
      );
      const resource = { type: 'env', id: realm.env_id };
      if (Object.keys(changes).length > 0)
        await tx.audit({
          action: `auth.realm.${from ? 'updated' : 'opened'}`,
          envId: realm.env_id,
          caller,
          resource,
          details: { changes },
        });
      return written;
    });
    await this.changed();
    return { env_id: realm.env_id, host: realm.host, ...settings };
  }

  /** Puts a realm on its host; a host is one environment's (409 `host_taken`). @returns its settings: as said, or as before. */
  async write(
    sql: Sql,
    { env_id: envId, org_id: orgId, host, ...said }: Named & { [Name in keyof Settings]?: Settings[Name] | undefined },
  ): Promise<Settings> {
    // Everybody signs in at the platform's own host; no tenant may stand in its place.
    const own = this.#ctx.platform.labelOf(host) !== undefined;
    if (own !== (envId === SYSTEM.envId) || (own && host !== this.system.host))
      throw this.#ctx.problem('host_taken', { detail: `${host} belongs to the platform.` });
    try {
      const [row] = await sql<[Settings]>`
        insert into realms ${sql.row({
          env_id: envId,
          org_id: orgId,
          host,
          ...Object.fromEntries(Object.entries(said).filter(([, value]) => value !== undefined)),
        })}
        on conflict (env_id) do update set host = excluded.host, org_id = excluded.org_id,
          verify_email = coalesce(${said.verify_email ?? null}::boolean, realms.verify_email),
          wallet_sign_in = coalesce(${said.wallet_sign_in ?? null}::text, realms.wallet_sign_in),
            passkeys = coalesce(${said.passkeys ?? null}::boolean, realms.passkeys),
          account_recovery = coalesce(${said.account_recovery ?? null}::text, realms.account_recovery),
          recovery_wait_hours = coalesce(${said.recovery_wait_hours ?? null}::integer, realms.recovery_wait_hours)
        returning verify_email, wallet_sign_in, passkeys, account_recovery, recovery_wait_hours`;
      return row;
    } catch (cause) {
      if ((cause as { code?: string }).code === UNIQUE_VIOLATION)
        throw this.#ctx.problem('host_taken', { cause, detail: `${host} is another environment's.` });
      throw cause;
    }
  }

  async seed(): Promise<void> {
    const { env_id, org_id, host } = this.system;
    await this.#ctx.db.sql`insert into realms (env_id, org_id, host) values (${env_id}, ${org_id}, ${host}) on conflict (env_id) do update
        set host = excluded.host`;
  }

  /**
   * The realm of a host as it is now: known for as long as the version stands still, or a moment while the store is away. Unknown hosts are
   * refused.
   */
  async onHost(host: string): Promise<Realm> {
    const { system } = this;
    if (host === system.host) return system;
    const version = await this.#ctx.kv.current([VERSION]).then(
      ([found]) => found ?? '',
      () => undefined,
    );
    const read = async () => (await this.#ctx.db.sql<Realm[]>`select * from realms where host = ${host}`)[0];
    const realm = await this.#byHost.get(host, read, version);
    if (!realm) throw this.#ctx.problem('realm_not_found', { detail: `${host} is not a sign-in host.` });
    return realm;
  }

  /** The realm of an environment that is known to have one. */
  async ofEnv(envId: string): Promise<Realm> {
    const realm = await this.find(envId);
    if (!realm) throw this.#ctx.problem('realm_not_found', { detail: 'The environment has no sign-in host.' });
    return realm;
  }

  /** Nothing once the environment is gone. */
  async find(envId: string): Promise<Realm | undefined> {
    if (envId === SYSTEM.envId) return this.system;
    const [realm] = isId(envId) ? await this.#ctx.db.sql<Realm[]>`select * from realms where env_id = ${envId}` : [];
    return realm;
  }

  /**
   * After a commit: the next request of every process reads anew. What another one knows while the store is away is at most half a minute
   * old.
   */
  async changed(): Promise<void> {
    this.#byHost.forget();
    await this.#ctx.kv
      .call('INCR', VERSION)
      .catch(error => this.#ctx.log.error({ err: error }, 'other processes could not be told of a changed realm'));
  }

  async exists(envId: string): Promise<boolean> {
    return (await this.#ctx.db.sql<object[]>`select 1 from realms where env_id = ${envId}`).length > 0;
  }

  issuer(realm: Realm): string {
    return this.#ctx.platform.publicOrigin(realm.host);
  }
}
