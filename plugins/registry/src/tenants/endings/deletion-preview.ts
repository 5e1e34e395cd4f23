import { type RequestOf, SYSTEM } from '@platform/sdk';
import type { DeletionPreview as Preview } from '../../../contract/schema/upkeep.ts';
import type { Contract, Ctx } from '../../context.ts';
import type { Access } from '../access.ts';
import type { EnvironmentPurges } from './environment-purges.ts';
import { authHostOf } from '../sign-in-host.ts';

const SHOWN = 50;
const KEPT = ['audit trail', 'slug and hostnames, so that nobody else gets them'];
const PROTECTED = { code: 'system_record_protected', detail: 'The platform needs this record.' };

/** What a delete would take along, counted before anybody confirms it (H-32). */
export class DeletionPreview {
  readonly #ctx: Ctx;
  readonly #access: Access;
  readonly #purges: EnvironmentPurges;

  constructor(ctx: Ctx, access: Access, purges: EnvironmentPurges) {
    this.#ctx = ctx;
    this.#access = access;
    this.#purges = purges;
  }

  async org({ params, caller }: RequestOf<Contract, 'previewOrgDeletion'>): Promise<Preview> {
    const org = await this.#access.org(caller, params.id, 'owner');
    const envs = await this.#ctx.db.sql<{ env_id: string; slug: string; display_name: string; auth_domain: string | null }[]>`
      select env_id, slug, display_name, auth_domain from envs where org_id = ${org.org_id} order by created_at limit ${SHOWN}`;
    const ids = await this.#ctx.db.sql<{ env_id: string }[]>`select env_id from envs where org_id = ${org.org_id} limit 101`;
    const { domain } = this.#ctx.platform;
    return {
      kind: 'org',
      id: org.org_id,
      slug: org.slug,
      display_name: org.display_name,
      counts: await this.#counts(org.org_id, null),
      services: await this.#purges.counts(ids.map(({ env_id }) => env_id)),
      environments: envs.map(({ auth_domain: _, ...env }) => env),
      hostnames: [...envs.map(env => authHostOf(env, org, domain)), ...(await this.#appHosts(org.org_id, null))].slice(0, SHOWN),
      blocked_by: org.org_id === SYSTEM.orgId ? [PROTECTED] : [],
      kept: KEPT,
    };
  }

  async env({ params, caller }: RequestOf<Contract, 'previewEnvDeletion'>): Promise<Preview> {
    const { org, ...env } = await this.#access.env(caller, params.env_id, 'owner');
    return {
      kind: 'env',
      id: env.env_id,
      slug: env.slug,
      display_name: env.display_name,
      counts: await this.#counts(org.org_id, env.env_id),
      services: await this.#purges.counts([env.env_id]),
      environments: [],
      hostnames: [authHostOf(env, org, this.#ctx.platform.domain), ...(await this.#appHosts(org.org_id, env.env_id))].slice(0, SHOWN),
      blocked_by: env.env_id === SYSTEM.envId ? [PROTECTED] : [],
      kept: KEPT,
    };
  }

  async #appHosts(orgId: string, envId: string | null): Promise<string[]> {
    const rows = await this.#ctx.db.sql<{ hostname: string }[]>`
      select hostname from hostnames where org_id = ${orgId} and app_instance_id is not null
        and (${envId}::uuid is null or env_id = ${envId}::uuid) order by hostname limit ${SHOWN}`;
    return rows.map(({ hostname }) => hostname);
  }

  /** Of one environment, or of all of an organization with what is the organization's own. */
  async #counts(orgId: string, envId: string | null): Promise<Record<string, number>> {
    const [counts] = await this.#ctx.db.sql<[Record<string, number>]>`
      with gone as (select env_id from envs where org_id = ${orgId} and (${envId}::uuid is null or env_id = ${envId}::uuid))
      select
        (select count(*)::int from gone where ${envId}::uuid is null) as environments,
        (select count(*)::int from app_instances join gone using (env_id) where status = 'active') as applications,
        (select count(*)::int from bindings join gone using (env_id)) as bindings,
        (select count(*)::int from custom_domains join app_instances using (app_instance_id) join gone using (env_id)) as custom_domains,
        (select count(*)::int from invitations where ${envId}::uuid is null and org_id = ${orgId} and status = 'pending') as invitations,
        (select count(*)::int from service_enablement join gone using (env_id)) as services,
        (select count(*)::int from branding where subject_id in (select env_id from gone)
          or (${envId}::uuid is null and subject_id = ${orgId})) as branding,
        (select count(*)::int from policy_sets join gone using (env_id) where origin = 'tenant') as policy_sets,
        (select count(*)::int from policy_relations join gone using (env_id)) as relations,
        (select count(*)::int from policy_attributes join gone using (env_id)) as attributes`;
    return Object.fromEntries(Object.entries(counts).filter(([, count]) => count > 0));
  }
}
