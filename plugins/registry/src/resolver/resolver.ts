import { type RequestOf, SYSTEM } from '@platform/sdk';
import type { Env, Org } from '../../contract/schema/tenant.ts';
import type { Contract, Ctx } from '../context.ts';
import type { Enablement } from '../enablement.ts';
import { envSnapshot } from '../tenants/snapshot.ts';
import { authHostOf } from '../tenants/sign-in-host.ts';

type Tenant = Env & { org: Org };

/** Hosts and tenants, read only (G-SYS-10, G-K-15). */
export class Resolver {
  readonly #ctx: Ctx;
  readonly #enablement: Enablement;

  constructor(ctx: Ctx, enablement: Enablement) {
    this.#ctx = ctx;
    this.#enablement = enablement;
  }

  /** Order: platform plane, `auth_domain`, service label in the catalog. A leading `bff.` is the gateway twin of the rest. */
  async hostname({ query }: RequestOf<Contract, 'resolveHostname'>) {
    const hostname = query.hostname.toLowerCase().replace(/:\d+$/, '').replace(/\.$/, '');
    const gateway = hostname.startsWith('bff.');
    const found = await this.#find(gateway ? hostname.slice(4) : hostname);
    if (!found || found.tenant.status === 'archived' || found.tenant.org.status === 'archived') throw this.#ctx.problem('hostname_unresolved', { detail: `Nobody answers on ${hostname}.` });
    const { tenant, service } = found;
    return {
      hostname,
      kind: tenant.env_id === SYSTEM.envId ? ('platform' as const) : ('tenant' as const),
      service: gateway ? 'bff' : service,
      env_id: tenant.env_id,
      env_slug: tenant.slug,
      org_id: tenant.org_id,
      app_id: null,
      app_instance_id: tenant.env_id === SYSTEM.envId && service === 'web' ? SYSTEM.consoleAppId : null,
      status: envSnapshot(tenant, tenant.org).status,
      ttl_s: 30,
    };
  }

  async authDomain({ params }: RequestOf<Contract, 'authDomain'>) {
    const env = await this.#env(params.id);
    return { env_id: env.env_id, auth_domain: env.auth_domain, auth_url: this.#ctx.platform.publicOrigin(authHostOf(env, env.org, this.#ctx.platform.domain)) };
  }

  /** Only for environments that use the asking service (G-SYS-14). */
  async tenant({ params, caller }: RequestOf<Contract, 'tenant'>) {
    const env = await this.#env(params.env_id);
    if (env.status === 'archived') throw this.#ctx.problem('env_not_found');
    if (!(await this.#enablement.isEnabled(env.env_id, caller.service))) throw this.#ctx.problem('tenant_service_disabled');
    return envSnapshot(env, env.org);
  }

  async #find(hostname: string): Promise<{ tenant: Tenant; service: string } | undefined> {
    const { domain } = this.#ctx.platform;
    const [label = '', ...rest] = hostname.split('.');
    const services = this.#labels();
    if (hostname.endsWith(`.ops.sys.${domain}`)) {
      const service = services.get(label);
      return service && hostname === `${label}.ops.sys.${domain}` ? { tenant: await this.#env(SYSTEM.envId), service } : undefined;
    }
    const [byDomain] = await this.#ctx.db.sql<Env[]>`select * from envs where auth_domain = ${hostname} and status <> 'archived'`;
    if (byDomain) return { tenant: await this.#env(byDomain.env_id), service: 'auth' };
    const [envSlug = '', ...domainParts] = rest;
    const service = services.get(label);
    if (!service) return undefined;
    const [env] = await this.#ctx.db.sql<Env[]>`
      select envs.* from envs join orgs using (org_id)
      where envs.slug = ${envSlug} and orgs.org_domain = ${domainParts.join('.')} and envs.status <> 'archived' and orgs.status <> 'archived'`;
    return env ? { tenant: await this.#env(env.env_id), service } : undefined;
  }

  #labels(): Map<string, string> {
    const manifests = this.#ctx.catalog.manifests() as readonly { id: string; hosts?: readonly string[] }[];
    return new Map(manifests.flatMap(({ id, hosts }) => [[id, id], ...(hosts ?? []).map(host => [host, id])] as [string, string][]));
  }

  async #env(envId: string): Promise<Tenant> {
    const [env] = await this.#ctx.db.sql<Env[]>`select * from envs where env_id = ${envId}`;
    if (!env) throw this.#ctx.problem('env_not_found', { detail: `No environment ${envId}.` });
    const [org] = await this.#ctx.db.sql<[Org]>`select * from orgs where org_id = ${env.org_id}`;
    return { ...env, org };
  }
}
