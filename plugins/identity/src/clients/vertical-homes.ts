import { isProblem } from '@platform/sdk';
import type { Ctx } from '../context.ts';

const ANSWER_MS = 5_000;

/** Whether a workload may act in an environment: those of the platform in all, those of a vertical where the vertical is at home. */
export interface VerticalHomes {
  require(workload: string, vertical: string | undefined, envId: string): Promise<void>;
}

/** A vertical is at home in the environments that use its service; the registry says which (F-33). */
export class RegisteredHomes implements VerticalHomes {
  readonly #ctx: Ctx;

  constructor(ctx: Ctx) {
    this.#ctx = ctx;
  }

  /** Throws `vertical_elsewhere`; for an environment that does not exist as well. */
  async require(workload: string, vertical: string | undefined, envId: string): Promise<void> {
    if (vertical === 'platform') return;
    const elsewhere = (cause?: unknown) =>
      this.#ctx.problem('vertical_elsewhere', { detail: 'Ask an administrator of the environment to turn the service on.', cause });
    const service = workload.split('-')[0];
    const { services } = await this.#ctx.services.registry
      .listServices({ params: { env_id: envId }, signal: AbortSignal.timeout(ANSWER_MS) })
      .catch((cause: unknown) => {
        throw isProblem(cause) && cause.status < 500 ? elsewhere(cause) : cause;
      });
    if (!services.some(each => each.service === service && each.enabled)) throw elsewhere();
  }
}
