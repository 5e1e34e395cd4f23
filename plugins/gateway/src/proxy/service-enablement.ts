import { type Cache, isProblem } from '@platform/sdk';
import type { Ctx } from '../context.ts';

const FRESH_MS = 30_000;
const STALE_MS = 300_000;
const LIMIT = 5_000;

/** Which services an environment has turned off. Kept 30 s, forgotten the moment the registry says that something changed. */
export class ServiceEnablement {
  readonly #ctx: Ctx;
  readonly #disabled: Cache<ReadonlySet<string>>;

  constructor(ctx: Ctx) {
    this.#ctx = ctx;
    // Nothing can have been switched while the registry is away.
    this.#disabled = ctx.cache({ max: LIMIT, ttl: FRESH_MS, stale: { ms: STALE_MS, on: error => !isRefusal(error) } });
  }

  /** Throws `service_disabled`, or `target_denied` for an environment that does not exist: nobody learns which. */
  async require(envId: string, service: string): Promise<void> {
    if ((await this.#of(envId)).has(service))
      throw this.#ctx.problem('service_disabled', {
        detail: `${service} is turned off here; an administrator of the environment can turn it on.`,
      });
  }

  /** Something changed in this environment, or anywhere. */
  forget(envId: string | undefined): void {
    this.#disabled.forget(envId);
  }

  async #of(envId: string): Promise<ReadonlySet<string>> {
    try {
      return await this.#disabled.get(envId, async () => {
        const { services } = await this.#ctx.services.registry.listServices({ params: { env_id: envId } });
        return new Set(services.filter(({ enabled }) => !enabled).map(({ service }) => service));
      });
    } catch (cause) {
      if (isRefusal(cause)) throw this.#ctx.problem('target_denied', { cause });
      throw this.#ctx.problem('not_ready', {
        cause,
        detail: 'The services of the environment are not known yet.',
        headers: { 'retry-after': '2' },
      });
    }
  }
}

const isRefusal = (error: unknown): boolean => isProblem(error) && error.status < 500;
