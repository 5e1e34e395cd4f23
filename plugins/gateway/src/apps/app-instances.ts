import { type Cache, isProblem } from '@platform/sdk';
import type { App } from './app.ts';
import type { AuthHosts } from './auth-hosts.ts';
import type { Ctx } from '../context.ts';

interface Known {
  readonly app: App | undefined;
  readonly envs: readonly string[];
}

const FRESH_MS = 300_000;
const LIMIT = 5_000;

/**
 * App instances of tenants as the registry has them, read only (GWY-007). Kept five minutes (GWY-065), forgotten the moment the registry
 * says that something changed.
 */
export class AppInstances {
  readonly #ctx: Ctx;
  readonly #hosts: AuthHosts;
  readonly #known: Cache<Known>;

  constructor(ctx: Ctx, hosts: AuthHosts) {
    this.#ctx = ctx;
    this.#hosts = hosts;
    // What is not there may be made the next moment.
    this.#known = ctx.cache({ max: LIMIT, ttl: ({ app }) => (app ? FRESH_MS : 0) });
  }

  /** The application, or `undefined` where there is none or nobody can sign in to it yet. */
  async find(appInstanceId: string): Promise<App | undefined> {
    return (await this.#known.get(appInstanceId, () => this.#read(appInstanceId))).app;
  }

  /** Something changed: one instance, one environment, or who knows what. */
  forget({ app_instance_id: id, env_id: envId }: { readonly app_instance_id?: string; readonly env_id?: string }): void {
    this.#hosts.forget(envId);
    this.#known.forget((key, { envs }) => key === id || (id === undefined && (envId === undefined || envs.includes(envId))));
  }

  async #read(appInstanceId: string): Promise<Known> {
    const { registry } = this.#ctx.services;
    const query = { app_instance_id: appInstanceId };
    try {
      const [mode, lists] = await Promise.all([registry.appInstanceAuthMode({ query }), registry.appInstanceScopes({ query })]);
      const known = (app: App | undefined): Known => ({ app, envs: [mode.env_id, mode.auth_env] });
      // A gate that names no group would be open to everybody.
      if (mode.oauth_client_id === null || (mode.auth_mode !== 'open' && mode.auth_group === null)) return known(undefined);
      return known({
        appInstanceId,
        envId: mode.auth_env,
        clientId: mode.oauth_client_id,
        issuerHost: await this.#hosts.of(mode.auth_env),
        gate: mode.auth_mode === 'open' ? 'open' : { group: mode.auth_group as string },
        allowSignup: mode.allow_signup,
        services: new Set(lists.service_whitelist),
        scopes: new Set(lists.scope_whitelist),
      });
    } catch (cause) {
      if (isProblem(cause) && cause.code === 'app_instance_not_found') return { app: undefined, envs: [] };
      throw this.#ctx.problem('not_ready', { cause, detail: 'The application is not known yet.', headers: { 'retry-after': '2' } });
    }
  }
}
