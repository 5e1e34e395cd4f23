import type { Sql } from '@platform/sdk';
import type { Org } from '../../contract/schema/tenant.ts';
import type { Ctx } from '../context.ts';

const within = (host: string, domain: string): boolean => host === domain || host.endsWith(`.${domain}`);

/** Refuses a domain whose hosts would be another organization's: under the platform's domain each has the one of its slug. */
export async function requireOrgDomain(ctx: Ctx, sql: Sql, { org_id: orgId, slug }: Pick<Org, 'org_id' | 'slug'>, orgDomain: string): Promise<void> {
  const { domain } = ctx.platform;
  const [other] = await sql<object[]>`select 1 from orgs where org_domain = ${orgDomain} and org_id <> ${orgId} and status <> 'archived'`;
  if (other || (within(orgDomain, domain) && orgDomain !== `${slug}.${domain}`)) throw taken(ctx, '/org_domain', orgDomain);
}

/** Refuses a sign-in host that lies in the platform's domain or another organization's. */
export async function requireAuthDomain(ctx: Ctx, sql: Sql, org: Org, authDomain: string): Promise<void> {
  if (within(authDomain, org.org_domain)) return;
  const others = await sql<
    { org_domain: string }[]
  >`select org_domain from orgs where org_id <> ${org.org_id} and status <> 'archived' and (org_domain = ${authDomain} or right(${authDomain}, length(org_domain) + 1) = '.' || org_domain)`;
  if (others.length > 0 || within(authDomain, ctx.platform.domain)) throw taken(ctx, '/auth_domain', authDomain);
}

export const taken = (ctx: Ctx, pointer: '/org_domain' | '/auth_domain', host: string, cause?: unknown) =>
  ctx.problem('hostname_taken', {
    detail: `"${host}" is not free for this organization.`,
    extra: { errors: [{ pointer, code: 'taken', message: 'belongs to somebody else' }] },
    ...(cause === undefined ? {} : { cause }),
  });
