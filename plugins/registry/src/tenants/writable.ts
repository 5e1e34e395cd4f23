import type { Env, Org } from '../../contract/schema/tenant.ts';
import type { Ctx } from '../context.ts';

/** Refuses a change inside an organization that is suspended or archived (G-SYS-02). */
export function requireWritableOrg(ctx: Ctx, org: Pick<Org, 'status'>): void {
  if (org.status === 'archived') throw ctx.problem('record_archived', { detail: 'The organization is archived; nothing in it changes any more.' });
  if (org.status === 'suspended') throw ctx.problem('org_suspended', { detail: 'A platform administrator can set the organization active again.' });
}

/** The same for an environment, which its organization's state covers. */
export function requireWritableEnv(ctx: Ctx, env: Pick<Env, 'status'> & { readonly org: Pick<Org, 'status'> }): void {
  if (env.status === 'archived') throw ctx.problem('record_archived', { detail: 'The environment is archived; nothing in it changes any more.' });
  requireWritableOrg(ctx, env.org);
  if (env.status === 'suspended') throw ctx.problem('env_suspended', { detail: 'A platform administrator can set the environment active again.' });
}
