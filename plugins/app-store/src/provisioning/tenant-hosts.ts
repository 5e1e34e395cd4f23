import { isProblem } from '@platform/sdk';
import type { Ctx } from '../context.ts';

const MOST_ENVS = 1_000;

/** An environment as an install needs to know it. */
export interface Tenant {
  readonly env_id: string;
  readonly env_slug: string;
  readonly org_id: string;
  readonly org_domain: string;
}

/** Hosts of an environment and its organization, in the registry's words (G-K-15). */
export class TenantHosts {
  readonly #ctx: Ctx;

  constructor(ctx: Ctx) {
    this.#ctx = ctx;
  }

  /** Throws 409 where nothing can be installed. */
  async of(envId: string): Promise<Tenant> {
    const tenant = await this.#ask(() => this.#ctx.services.registry.tenant({ params: { env_id: envId } }));
    if (tenant.status !== 'active') throw this.#ctx.problem('tenant_not_installable', { detail: `The environment is ${tenant.status}.` });
    const { env_id, env_slug, org_id, org_domain } = tenant;
    if (env_id === null || env_slug === null) throw this.#ctx.problem('tenant_not_installable', { detail: 'Name an environment.' });
    return { env_id, env_slug, org_id, org_domain };
  }

  hostname({ env_slug, org_domain }: Tenant, slug: string): string {
    return `${slug}.${env_slug}.${org_domain}`;
  }

  /** Where people of the organization sign in. */
  async authUrls({ org_id, org_domain }: Tenant): Promise<string[]> {
    const urls: string[] = [];
    for (let cursor: string | null = null; urls.length < MOST_ENVS; ) {
      const page: Awaited<ReturnType<Ctx['services']['registry']['listEnvs']>> = await this.#ask(() =>
        this.#ctx.services.registry.listEnvs({ query: { org_id, limit: 200, ...(cursor === null ? {} : { cursor }) } }),
      );
      for (const { status, slug, auth_domain } of page.items)
        if (status === 'active') urls.push(this.#ctx.platform.publicOrigin(auth_domain ?? `auth.${slug}.${org_domain}`));
      cursor = page.next_cursor;
      if (cursor === null) break;
    }
    return urls;
  }

  /** Throws `auth_url_not_owned` (G-APP-03). */
  async requireAuthUrl(tenant: Tenant, authUrl: string): Promise<void> {
    const asked = URL.parse(authUrl);
    const plain =
      asked?.protocol === 'https:' &&
      (asked.pathname === '/' || asked.pathname === '') &&
      asked.search === '' &&
      asked.hash === '' &&
      asked.username === '' &&
      asked.password === '';
    const owned = plain && (await this.authUrls(tenant)).some(url => [url, withoutPort(url)].includes(asked.origin));
    if (!owned)
      throw this.#ctx.problem('auth_url_not_owned', {
        detail: 'Choose where people of this organization sign in, such as https://auth.{environment}.{domain}.',
      });
  }

  async #ask<T>(question: () => Promise<T>): Promise<T> {
    try {
      return await question();
    } catch (cause) {
      if (isProblem(cause) && cause.status < 500)
        throw this.#ctx.problem('tenant_not_installable', { detail: `The registry refused: ${cause.code}.`, cause });
      throw this.#ctx.problem('neighbour_unavailable', { detail: 'The registry did not answer. Try again.', cause });
    }
  }
}

/** Where people come back to after they signed in, at the gateway of a host (APP-062): as browsers see it, and as it is without a port. */
export function callbacksOf(ctx: Ctx, hostname: string): string[] {
  return [...new Set([`${ctx.platform.publicOrigin(`bff.${hostname}`)}/auth/callback`, `https://bff.${hostname}/auth/callback`])];
}

const withoutPort = (origin: string): string => origin.replace(/:\d+$/, '');
