import { type Caller, isId, type RequestOf } from '@platform/sdk';
import type { Env, Org } from '../../contract/schema/tenant.ts';
import { type AppRow, selectApps } from '../apps/app-row.ts';
import type { Contract, Ctx } from '../context.ts';
import type { Enablement } from '../verticals/enablement.ts';
import type { Access } from '../tenants/access.ts';
import { envSnapshot } from '../tenants/snapshot.ts';
import { authHostOf } from '../tenants/sign-in-host.ts';
import type { HostIndex } from './host-index.ts';

type Tenant = Env & { org: Org };

/** Hosts, app instances and tenants, read only (G-SYS-10). */
export class Resolver {
  readonly #ctx: Ctx;
  readonly #hosts: HostIndex;
  readonly #enablement: Enablement;
  readonly #access: Access;

  constructor(ctx: Ctx, { hosts, enablement, access }: { hosts: HostIndex; enablement: Enablement; access: Access }) {
    this.#ctx = ctx;
    this.#hosts = hosts;
    this.#enablement = enablement;
    this.#access = access;
  }

  async hostname({ query, caller }: RequestOf<Contract, 'resolveHostname'>) {
    const hostname = bare(query.hostname);
    const found = await this.#hosts.find(hostname);
    if (!found) throw this.#access.missing(caller, this.#ctx.problem('hostname_unresolved', { detail: `Nobody answers on ${hostname}.` }));
    await this.#access.reachEnv(caller, found);
    return found;
  }

  async appScopes({ query, caller }: RequestOf<Contract, 'appInstanceScopes'>) {
    const { app_instance_id, scope_whitelist, service_whitelist } = await this.#app(query, caller);
    return { app_instance_id, scope_whitelist, service_whitelist };
  }

  async appAuthMode({ query, caller }: RequestOf<Contract, 'appInstanceAuthMode'>) {
    const { app_instance_id, env_id, auth_mode, auth_group, allow_signup, oauth_client_id } = await this.#app(query, caller);
    return { app_instance_id, env_id, auth_env: env_id, auth_mode, auth_group, allow_signup, oauth_client_id };
  }

  async authDomain({ params, caller }: RequestOf<Contract, 'authDomain'>) {
    const env = await this.#env(params.id, caller);
    return {
      env_id: env.env_id,
      auth_domain: env.auth_domain,
      auth_url: this.#ctx.platform.publicOrigin(authHostOf(env, env.org, this.#ctx.platform.domain)),
    };
  }

  async appDomain({ params, query, caller }: RequestOf<Contract, 'appCustomDomain'>) {
    const env = await this.#env(params.id, caller);
    const { app_instance_id, env_id, fqdn, domain_status } = await this.#app(query, caller);
    if (env_id !== env.env_id)
      throw this.#ctx.problem('app_instance_not_found', { detail: `No app instance ${app_instance_id} in this environment.` });
    return { env_id, app_instance_id, fqdn, status: fqdn === null ? null : domain_status };
  }

  /** Only for environments that use the asking service (G-SYS-14). */
  async tenant({ params, caller }: RequestOf<Contract, 'tenant'>) {
    const env = await this.#env(params.env_id, caller);
    if (env.status === 'archived' || env.org.status === 'archived')
      throw this.#ctx.problem('env_not_found', { detail: 'The environment is archived.' });
    if (!(await this.#enablement.isEnabled(env.env_id, caller.service)))
      throw this.#ctx.problem('service_disabled', { detail: `${caller.service} is turned off in this environment.` });
    return envSnapshot(env, env.org);
  }

  /** The live app instance that exactly one member of the query names. */
  async #app(query: { app_instance_id?: string; hostname?: string; client_id?: string }, caller: Caller): Promise<AppRow> {
    const named = [query.app_instance_id, query.hostname, query.client_id].filter(value => value !== undefined);
    if (named.length !== 1)
      throw this.#ctx.problem('selector_required', { detail: 'Send one of app_instance_id, hostname and client_id.' });
    const id = query.hostname === undefined ? query.app_instance_id : (await this.#hosts.find(bare(query.hostname)))?.app_instance_id;
    const { sql } = this.#ctx.db;
    const [row] = await selectApps(
      sql,
      sql`join orgs o on o.org_id = e.org_id where a.status = 'active' and e.status <> 'archived' and o.status <> 'archived'
        and ${query.client_id === undefined ? sql`a.app_instance_id = ${id ?? null}::uuid` : sql`a.oauth_client_id = ${query.client_id}`}`,
    );
    if (!row)
      throw this.#access.missing(
        caller,
        this.#ctx.problem('app_instance_not_found', { detail: `No app instance answers to ${named[0]}.` }),
      );
    await this.#access.reachEnv(caller, row);
    return row;
  }

  async #env(envId: string, caller: Caller): Promise<Tenant> {
    const [env] = isId(envId) ? await this.#ctx.db.sql<Env[]>`select * from envs where env_id = ${envId}` : [];
    if (!env) throw this.#access.missing(caller, this.#ctx.problem('env_not_found', { detail: `No environment ${envId}.` }));
    await this.#access.reachEnv(caller, env);
    const [org] = await this.#ctx.db.sql<[Org]>`select * from orgs where org_id = ${env.org_id}`;
    return { ...env, org };
  }
}

/** As names are compared: lower case, no port, no trailing dot (G-K-15). */
const bare = (hostname: string): string => hostname.toLowerCase().replace(/:\d+$/, '').replace(/\.$/, '');
