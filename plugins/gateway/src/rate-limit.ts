import type { Limit } from '@platform/sdk';
import type { Ctx } from './context.ts';

/** So many a minute per address (G-K-19). */
export class RateLimit {
  readonly #ctx: Ctx;
  readonly #max: number;
  readonly #limit: Limit;

  constructor(ctx: Ctx, name: string, max: number) {
    this.#ctx = ctx;
    this.#max = max;
    this.#limit = ctx.limit({ name, max, seconds: 60 });
  }

  /** Throws `rate_limited` when the minute is used up. */
  async take(address: string): Promise<void> {
    const { allowed, retryAfterSeconds, headers } = await this.#limit.take(address);
    if (!allowed)
      throw this.#ctx.problem('rate_limited', {
        detail: `At most ${this.#max} in a minute. Try again in ${retryAfterSeconds} s.`,
        headers,
      });
  }
}
