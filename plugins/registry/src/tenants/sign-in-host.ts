import { SYSTEM, platformHost } from '@platform/sdk';
import type { Env, Org } from '../../contract/schema/tenant.ts';

/** Host people of an environment sign in at (G-K-15). */
export const authHostOf = (env: Pick<Env, 'env_id' | 'slug' | 'auth_domain'>, org: Pick<Org, 'org_domain'>, domain: string): string =>
  env.env_id === SYSTEM.envId ? platformHost('auth', domain) : (env.auth_domain ?? `auth.${env.slug}.${org.org_domain}`);
