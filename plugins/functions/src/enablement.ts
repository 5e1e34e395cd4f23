import { type Cache, isProblem, SYSTEM } from '@platform/sdk';
import type { FuncContext } from './context.ts';

/** Whether an environment has functions turned on: a row that says no is the only one that counts (C33, FUN-017). */
export class Enablement {
  readonly #ctx: FuncContext;
  readonly #disabled: Cache<boolean>;

  constructor(ctx: FuncContext) {
    this.#ctx = ctx;
    this.#disabled = ctx.cache({ max: 5_000, ttl: 30_000, stale: { ms: 300_000, on: error => !(isProblem(error) && error.status < 500) } });
  }

  /** Throws 409 where they are turned off (FUN-018). */
  async require(envId: string): Promise<void> {
    if (envId === SYSTEM.envId) return;
    const disabled = await this.#disabled.get(envId, async () => {
      const { services } = await this.#ctx.services.registry.listServices({ params: { env_id: envId } });
      return services.some(({ service, enabled }) => service === 'func' && !enabled);
    });
    if (disabled) throw this.#ctx.problem('func_disabled', { detail: 'An administrator of the environment can turn them on.' });
  }

  forget(envId: string): void {
    this.#disabled.forget(envId);
  }
}
