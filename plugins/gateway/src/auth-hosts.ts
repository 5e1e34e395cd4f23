import { SYSTEM } from '@platform/sdk';
import type { Ctx } from './context.ts';

const FRESH_MS = 300_000;
const LIMIT = 5_000;

/** The host where people of an environment sign in, as the registry has it: a custom domain, or the environment's own. Kept five minutes. */
export class AuthHosts {
  readonly #ctx: Ctx;
  readonly #known = new Map<string, { host: string; at: number }>();

  constructor(ctx: Ctx) {
    this.#ctx = ctx;
  }

  /** Throws what the registry throws; `env_not_found` where there is no such environment. */
  async of(envId: string): Promise<string> {
    if (envId === SYSTEM.envId) return `auth.ops.sys.${this.#ctx.platform.domain}`;
    const now = this.#ctx.clock.now().getTime();
    const known = this.#known.get(envId);
    if (known && now - known.at < FRESH_MS) return known.host;
    const { auth_url: url } = await this.#ctx.services.registry.authDomain({ params: { id: envId } });
    const { hostname: host } = new URL(url);
    this.#known.delete(envId);
    this.#known.set(envId, { host, at: now });
    if (this.#known.size > LIMIT) this.#known.delete(this.#known.keys().next().value as string);
    return host;
  }

  /** Hosts of this environment may have changed; of every one when none is named. */
  forget(envId: string | undefined): void {
    if (envId === undefined) this.#known.clear();
    else this.#known.delete(envId);
  }
}
