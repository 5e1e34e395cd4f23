import type { Env, Org, TenantSnapshot } from '../../contract/schema/tenant.ts';

/** Snapshot of an organization: env members are null (G-SYS-01). */
export const orgSnapshot = (org: Org): TenantSnapshot => ({
  env_id: null,
  env_slug: null,
  env_display_name: null,
  org_id: org.org_id,
  org_slug: org.slug,
  org_domain: org.org_domain,
  org_display_name: org.display_name,
  auth_domain: null,
  status: org.status,
});

/** Snapshot of an environment within its organization; an active one shows its organization's status (G-SYS-01). */
export const envSnapshot = (env: Env, org: Org): TenantSnapshot => ({
  ...orgSnapshot(org),
  env_id: env.env_id,
  env_slug: env.slug,
  env_display_name: env.display_name,
  auth_domain: env.auth_domain,
  status: env.status === 'active' ? org.status : env.status,
});
