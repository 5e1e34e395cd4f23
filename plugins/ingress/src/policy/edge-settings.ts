import type { Cache } from '@platform/sdk';
import type { Ctx } from '../context.ts';

export type WafMode = 'off' | 'detect' | 'block';
/** What the edge does for the hosts of one environment (decisions 12, numbers). */
export interface Settings {
  readonly waf: WafMode;
  /** What lies beyond the beginning of a large body is screened as well, or passes as it is. */
  readonly wafLargeBodies: boolean;
  readonly limited: boolean;
  readonly rps: number;
}

/** Whose attributes these are in the policy administration of the ingress (`/v1/admin/attributes`). */
export const SETTINGS_OF = 'workload:proxy';
const FRESH_MS = 1_000;
const MOST = 10_000;
export const MODES: ReadonlyMap<string, WafMode> = new Map(
  Object.entries({ off: 'off', detect: 'detect', block: 'block', on: 'block', true: 'block', false: 'off' } as const),
);

/**
 * Switches per environment over the platform's defaults: the attributes `waf_mode` (or `waf_enabled`), `waf_large_bodies`,
 * `rate_limit_enabled` and `rate_limit_rps`.
 */
export class EdgeSettings {
  readonly #ctx: Ctx;
  readonly #known: Cache<Settings>;
  readonly #defaults: Settings;

  constructor(ctx: Ctx) {
    this.#ctx = ctx;
    this.#known = ctx.cache({ max: MOST, ttl: FRESH_MS });
    this.#defaults = {
      waf: MODES.get(ctx.config.waf) ?? 'off',
      wafLargeBodies: ctx.config.wafLargeBodies,
      limited: ctx.config.rateLimit,
      rps: ctx.config.rateLimitRps,
    };
  }

  /**
   * Never fails: while the administration cannot be read, what was last known holds, or else the platform's defaults. A fault switches no
   * screening off.
   */
  of(envId: string | null): Promise<Settings> {
    return envId === null ? Promise.resolve(this.#defaults) : this.#known.get(envId, () => this.#read(envId));
  }

  /** What these attributes mean where they leave something to the platform. */
  from(set: Readonly<Record<string, unknown>>): Settings {
    const rps = set['rate_limit_rps'];
    return {
      waf: MODES.get(String(set['waf_mode'] ?? set['waf_enabled'])) ?? this.#defaults.waf,
      wafLargeBodies: flag(set['waf_large_bodies']) ?? this.#defaults.wafLargeBodies,
      limited: flag(set['rate_limit_enabled']) ?? this.#defaults.limited,
      rps: typeof rps === 'number' && rps >= 1 && rps <= 1_000_000 ? rps : this.#defaults.rps,
    };
  }

  /** In this process a change counts at once; others hear of it, and look again within a second. */
  changed(envId: string): void {
    this.#known.forget(known => known === envId);
  }

  async #read(envId: string): Promise<Settings> {
    const set = await this.#ctx.policy.attributes(SETTINGS_OF, envId).catch(error => {
      this.#ctx.log.warn({ env_id: envId, err: error }, 'settings of an environment could not be read; what was last known holds');
    });
    return set ? this.from(set) : (this.#known.peek(envId) ?? this.#defaults);
  }
}

/** Nothing stands for what is no switch. */
export const flag = (value: unknown): boolean | undefined => (typeof value === 'boolean' ? value : undefined);
