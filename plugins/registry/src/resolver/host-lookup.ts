import { SYSTEM } from '@platform/sdk';
import type { Resolved } from '../../contract/schema/resolver.ts';
import type { Ctx } from '../context.ts';
import type { ServiceLabels } from './service-labels.ts';

interface Place {
  readonly env_id: string;
  readonly env_slug: string;
  readonly org_id: string;
  readonly status: Resolved['status'];
}
interface Held extends Place {
  readonly kind: 'app' | 'custom' | 'auth';
  readonly app_id: string | null;
  readonly app_instance_id: string | null;
}
type Answer = Omit<Resolved, 'hostname'>;

/** Where the pages of an application are served. */
const PAGES = 'web';

/** Where a host leads, from the database (G-K-15): custom domain → platform plane → `auth_domain` → service label → app slug. */
export class HostLookup {
  readonly #ctx: Ctx;
  readonly #labels: ServiceLabels;

  constructor(ctx: Ctx, labels: ServiceLabels) {
    this.#ctx = ctx;
    this.#labels = labels;
  }

  /** `bff.` before any other host is the gateway's twin of the rest, with its application's context (C30). */
  async find(hostname: string): Promise<Resolved | undefined> {
    const own = await this.#exact(hostname);
    if (own) return { hostname, ...own };
    const twin = hostname.startsWith('bff.') ? await this.#exact(hostname.slice(4)) : undefined;
    return twin && { hostname, ...twin, service: 'bff' };
  }

  async #exact(host: string): Promise<Answer | undefined> {
    const held = await this.#held(host);
    if (held?.kind === 'custom') return answer('custom', PAGES, held, held);
    const [label = '', envSlug = '', ...domain] = host.split('.');
    const service = await this.#labels.serviceOf(label);
    if (host === `${label}.${SYSTEM.envSlug}.${SYSTEM.orgSlug}.${this.#ctx.platform.domain}`) {
      const system = { env_id: SYSTEM.envId, env_slug: SYSTEM.envSlug, org_id: SYSTEM.orgId, status: 'active' } as const;
      if (service) return answer('platform', service, system, held);
    }
    if (held?.kind === 'auth') return answer('tenant', 'auth', held);
    const env = service && (await this.#env(envSlug, domain.join('.')));
    if (env) return answer('tenant', service, env);
    return held && answer(held.env_id === SYSTEM.envId ? 'platform' : 'tenant', PAGES, held, held);
  }

  async #held(host: string): Promise<Held | undefined> {
    const [row] = await this.#ctx.db.sql<Held[]>`
      select h.kind, e.env_id, e.slug as env_slug, o.org_id, case e.status when 'active' then o.status
        else e.status end as status, a.app_id, a.app_instance_id
      from hostnames h join envs e using (env_id) join orgs o on o.org_id = e.org_id left join app_instances a using (app_instance_id)
      where h.hostname = ${host} and e.status <> 'archived' and o.status <> 'archived'
        and (h.kind = 'custom' or ${this.#proven(this.#ctx.db.sql`h.hostname`)})`;
    return row;
  }

  async #env(slug: string, orgDomain: string): Promise<Place | undefined> {
    const [row] = await this.#ctx.db.sql<Place[]>`
      select e.env_id, e.slug as env_slug, o.org_id, case e.status when 'active' then o.status else e.status end as status
      from envs e join orgs o using (org_id) where e.slug = ${slug} and o.org_domain = ${orgDomain} and e.status <> 'archived'
        and o.status <> 'archived'
        and ${this.#proven(this.#ctx.db.sql`o.org_domain`)}`;
    return row;
  }

  /** A host outside the platform's domain leads somewhere once its organization has proven the domain (F-34). */
  #proven(host: unknown): unknown {
    const { sql } = this.#ctx.db;
    const below = (domain: unknown) => sql`(${host} = ${domain} or right(${host}, length(${domain}) + 1) = '.' || ${domain})`;
    return sql`(${below(sql`${this.#ctx.platform.domain}::text`)} or exists (
      select 1 from domain_proofs p where p.org_id = o.org_id and p.status = 'verified' and ${below(sql`p.domain`)}))`;
  }
}

const answer = (kind: Resolved['kind'], service: string, place: Place, app?: Pick<Held, 'app_id' | 'app_instance_id'>): Answer => ({
  kind,
  service,
  env_id: place.env_id,
  env_slug: place.env_slug,
  org_id: place.org_id,
  app_id: app?.app_id ?? null,
  app_instance_id: app?.app_instance_id ?? null,
  status: place.status,
  ttl_s: 30,
});
