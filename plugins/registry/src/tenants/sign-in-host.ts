import { SYSTEM } from '@platform/sdk';
import type { Env, Org } from '../../contract/schema/tenant.ts';
import type { Ctx } from '../context.ts';

/** Host people of an environment sign in at (G-K-15). */
export const authHostOf = (env: Pick<Env, 'env_id' | 'slug' | 'auth_domain'>, org: Pick<Org, 'org_domain'>, domain: string): string =>
  env.env_id === SYSTEM.envId ? `auth.ops.sys.${domain}` : (env.auth_domain ?? `auth.${env.slug}.${org.org_domain}`);

/** Moves a realm nobody signs in to off its host, so that the slug or domain can be used again (C34). What was decided stands without it. */
export async function releaseHost(ctx: Ctx, env: Pick<Env, 'env_id' | 'org_id'>): Promise<void> {
  try {
    await ctx.services.identity.putRealm({ params: { env_id: env.env_id }, body: { host: `${env.env_id}.released.invalid`, org_id: env.org_id }, signal: AbortSignal.timeout(2_000) });
  } catch (error) {
    ctx.log.warn({ err: error, released_env: env.env_id }, 'the sign-in host of a former environment is not released yet');
  }
}
