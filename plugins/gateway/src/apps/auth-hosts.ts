import { type Cache, SYSTEM } from '@platform/sdk';
import type { Ctx } from '../context.ts';

const FRESH_MS = 300_000;
const LIMIT = 5_000;

/**
 * The host where people of an environment sign in, as the registry has it: a custom domain, or the environment's own. Kept five minutes.
 */
export class AuthHosts {
  readonly #ctx: Ctx;
  readonly #hosts: Cache<string>;

  constructor(ctx: Ctx) {
    this.#ctx = ctx;
    this.#hosts = ctx.cache({ max: LIMIT, ttl: FRESH_MS });
  }

  /** Throws what the registry throws; `env_not_found` where there is no such environment. */
  async of(envId: string): Promise<string> {
    if (envId === SYSTEM.envId) return this.#ctx.platform.host('auth');
    return this.#hosts.get(
      envId,
      async () => new URL((await this.#ctx.services.registry.authDomain({ params: { id: envId } })).auth_url).hostname,
    );
  }

  /** Hosts of this environment may have changed; of every one when none is named. */
  forget(envId: string | undefined): void {
    this.#hosts.forget(envId);
  }
}
