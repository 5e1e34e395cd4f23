import type { Sql } from '@platform/sdk';
import type { Org } from '../../contract/schema/tenant.ts';
import type { Ctx } from '../context.ts';

/** Whether a host is a domain, or lies below it. */
export const within = (host: string, domain: string): boolean => host === domain || host.endsWith(`.${domain}`);

/** Refuses a domain whose hosts would be another organization's: under the platform's domain each has the one of its slug. */
export async function requireOrgDomain(
  ctx: Ctx,
  sql: Sql,
  { org_id: orgId, slug }: Pick<Org, 'org_id' | 'slug'>,
  orgDomain: string,
): Promise<void> {
  const { domain } = ctx.platform;
  const [other] = await sql<object[]>`select 1 from orgs where org_domain = ${orgDomain} and org_id <> ${orgId} and status <> 'archived'`;
  if (other || (within(orgDomain, domain) && orgDomain !== `${slug}.${domain}`)) throw taken(ctx, '/org_domain', orgDomain);
}

/** Refuses a sign-in host that lies in the platform's domain or another organization's, or that was given to somebody. */
export async function requireAuthDomain(ctx: Ctx, sql: Sql, org: Org, authDomain: string): Promise<void> {
  const [held] = await sql<
    object[]
  >`select 1 from hostnames where hostname = ${authDomain} and (org_id <> ${org.org_id} or app_instance_id is not null)`;
  if (held) throw taken(ctx, '/auth_domain', authDomain);
  if (!within(authDomain, org.org_domain) && (await foreign(ctx, sql, org, authDomain))) throw taken(ctx, '/auth_domain', authDomain);
}

/** Refuses a custom domain that is, or would hide, a name of the platform, of another organization or of a service. */
export async function requireFqdn(
  ctx: Ctx,
  sql: Sql,
  { org, appInstanceId, fqdn }: { org: Pick<Org, 'org_id' | 'org_domain'>; appInstanceId: string; fqdn: string },
): Promise<void> {
  // `{label}.{env}.{org_domain}` is derived, and `bff.` is the gateway's twin of the rest (G-K-15).
  const derived = within(fqdn, org.org_domain) && fqdn.slice(0, -org.org_domain.length).split('.').length === 3;
  const [held] = await sql<object[]>`
    select 1 from hostnames where hostname = ${fqdn} and (org_id <> ${org.org_id} or (env_id is not null and app_instance_id is distinct
      from ${appInstanceId}::uuid))`;
  if (derived || held || fqdn.startsWith('bff.') || (await foreign(ctx, sql, org, fqdn))) throw taken(ctx, '/fqdn', fqdn);
}

async function foreign(ctx: Ctx, sql: Sql, org: Pick<Org, 'org_id'>, host: string): Promise<boolean> {
  if (within(host, ctx.platform.domain)) return true;
  const others = await sql<object[]>`select 1 from orgs where org_id <> ${org.org_id} and status <> 'archived'
    and (org_domain = ${host} or right(${host}, length(org_domain) + 1) = '.' || org_domain) limit 1`;
  return others.length > 0;
}

export const taken = (ctx: Ctx, pointer: '/org_domain' | '/auth_domain' | '/slug' | '/fqdn', host: string, cause?: unknown) =>
  ctx.problem('hostname_taken', {
    detail: `"${host}" is not free for this organization.`,
    extra: { errors: [{ pointer, code: 'taken', message: 'belongs to somebody else' }] },
    ...(cause === undefined ? {} : { cause }),
  });
