import type { Cache } from '@platform/sdk';
import type { Ctx } from '../context.ts';
import type { Look } from '../templates/mail-layout.ts';

const ASKED_MS = 2_000;

/** What the registry says of an environment, as far as messages need it; kept for a minute, and longer while it does not answer. */
export class Tenants {
  readonly #ctx: Ctx;
  readonly #looks: Cache<Look>;
  readonly #orgs: Cache<string>;

  constructor(ctx: Ctx) {
    this.#ctx = ctx;
    const stale = { ms: 3_600_000 };
    this.#looks = ctx.cache<Look>({ max: 5_000, ttl: 60_000, stale });
    this.#orgs = ctx.cache<string>({ max: 5_000, ttl: 600_000, stale });
  }

  /**
   * Branding: an organization's, with what is not empty of the environment's in its place (G-SYS-09). A message without it is better than
   * none.
   */
  async look(envId: string): Promise<Look> {
    try {
      return await this.#looks.get(envId, async () => {
        const { primary_color = null, logo_url = null } = await this.#ctx.services.registry.mergedBranding({
          params: { id: envId },
          signal: AbortSignal.timeout(ASKED_MS),
        });
        return { primary_color, logo_url };
      });
    } catch (error) {
      this.#ctx.log.debug({ err: error, env_id: envId }, 'branding could not be read');
      return {};
    }
  }

  /** The organization of an environment. Throws `org_unknown` when the registry does not say. */
  async orgOf(envId: string): Promise<string> {
    try {
      return await this.#orgs.get(
        envId,
        async () => (await this.#ctx.services.registry.getEnv({ params: { env_id: envId }, signal: AbortSignal.timeout(ASKED_MS) })).org_id,
      );
    } catch (cause) {
      throw this.#ctx.problem('org_unknown', { detail: 'The registry did not say whose environment it is. Try again.', cause });
    }
  }
}
