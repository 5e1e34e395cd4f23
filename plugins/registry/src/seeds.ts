import { SYSTEM } from '@platform/sdk';
import type { Ctx } from './context.ts';
import type { PolicyStore } from './policy/policy-store.ts';

/** Initial records of a fresh platform under their fixed ids (G-SYS-04); every start finds them there. */
export async function seed(ctx: Ctx, policies: PolicyStore): Promise<void> {
  await ctx.db.tx(async tx => {
    await tx.sql`
      insert into orgs ${tx.sql.row({
        org_id: SYSTEM.orgId,
        slug: SYSTEM.orgSlug,
        display_name: 'Platform',
        org_domain: `sys.${ctx.platform.domain}`,
      })} on conflict (org_id) do nothing`;
    await tx.sql`
      insert into envs ${tx.sql.row({ env_id: SYSTEM.envId, org_id: SYSTEM.orgId, slug: SYSTEM.envSlug, display_name: 'Operations' })}
        on conflict (env_id) do nothing`;
    // Nobody signs up to the console, and only its group signs in (REG-034); the group itself is the identity service's.
    await tx.sql`
      insert into app_instances ${tx.sql.row({
        app_instance_id: SYSTEM.consoleAppId,
        env_id: SYSTEM.envId,
        app_id: 'console',
        slug: 'console',
        name: 'Console',
        hostname: `console.${SYSTEM.envSlug}.${SYSTEM.orgSlug}.${ctx.platform.domain}`,
        oauth_client_id: 'console',
        auth_mode: 'self_service',
        auth_group: SYSTEM.consoleGroup,
        allow_signup: false,
      })} on conflict (app_instance_id) do nothing`;
    await policies.seed(tx, SYSTEM.envId);
    await tx.release(SYSTEM.envId);
  });
}
