import type { RequestOf } from '@platform/sdk';
import type { ChosenSettings as Chosen, SettingsSeen } from '../../contract/settings.ts';
import type { Contract, Ctx } from '../context.ts';
import { type EdgeSettings, flag, MODES, SETTINGS_OF } from './edge-settings.ts';

type Attributes = Readonly<Record<string, unknown>>;

/** What an environment asks of the ingress, as operators see and change it; kept as attributes of the policy administration (G-K-10). */
export class ChosenSettings {
  readonly #ctx: Ctx;
  readonly #inForce: EdgeSettings;

  constructor(ctx: Ctx, inForce: EdgeSettings) {
    this.#ctx = ctx;
    this.#inForce = inForce;
  }

  async seen(envId: string): Promise<SettingsSeen> {
    return this.#seen(await this.#ctx.policy.attributes(SETTINGS_OF, envId));
  }

  /** Whole: what the page shows is what is written. Counts within seconds, in every process. */
  async put({ body, caller, env }: RequestOf<Contract, 'putSettings'>): Promise<SettingsSeen> {
    const { before, after } = await this.#ctx.policy.setAttributes(SETTINGS_OF, env, attributesOf(body), caller);
    this.#inForce.changed(env);
    const [was, is] = [chosenFrom(before), chosenFrom(after)];
    const changes = Object.fromEntries(
      (Object.keys({ ...was, ...is }) as (keyof Chosen)[]).flatMap(name =>
        was[name] === is[name] ? [] : [[name, { from: was[name] ?? 'default', to: is[name] ?? 'default' }]],
      ),
    );
    if (Object.keys(changes).length > 0)
      await this.#ctx.db.tx(tx =>
        tx.audit({
          action: 'proxy.settings.updated',
          envId: env,
          caller,
          resource: { type: 'env', id: env },
          details: { changes },
        }),
      );
    return this.#seen(after);
  }

  #seen(attributes: Attributes): SettingsSeen {
    const { waf, wafLargeBodies, limited, rps } = this.#inForce.from(attributes);
    return {
      ...chosenFrom(attributes),
      in_force: { waf_mode: waf, waf_large_bodies: wafLargeBodies, rate_limit: limited, rate_limit_rps: rps },
    };
  }
}

function chosenFrom(set: Attributes): Chosen {
  const rps = set['rate_limit_rps'];
  return {
    waf_mode: MODES.get(String(set['waf_mode'] ?? set['waf_enabled'])) ?? 'default',
    waf_large_bodies: switchOf(set['waf_large_bodies']),
    rate_limit: switchOf(set['rate_limit_enabled']),
    ...(Number.isInteger(rps) ? { rate_limit_rps: rps as number } : {}),
  };
}

/** What is left to the platform is no attribute. */
const attributesOf = ({ waf_mode, waf_large_bodies, rate_limit, rate_limit_rps }: Chosen) => ({
  waf_mode: waf_mode === 'default' ? null : waf_mode,
  // `waf_mode` says the same, and more.
  waf_enabled: null,
  waf_large_bodies: attributeOf(waf_large_bodies),
  rate_limit_enabled: attributeOf(rate_limit),
  rate_limit_rps: rate_limit_rps ?? null,
});

type Switch = Chosen['rate_limit'];
const switchOf = (value: unknown): Switch => (flag(value) === undefined ? 'default' : value === true ? 'on' : 'off');
const attributeOf = (value: Switch): boolean | null => (value === 'default' ? null : value === 'on');
