import type { Ctx } from './context.ts';

const COUNT = `
local count = redis.call('INCR', KEYS[1])
if count == 1 then redis.call('PEXPIRE', KEYS[1], ARGV[1]) end
return { count, redis.call('PTTL', KEYS[1]) }`;
const WINDOW_MS = 60_000;

/** So many a minute per address, counted for all processes together (G-K-19). */
export class RateLimit {
  readonly #ctx: Ctx;
  readonly #name: string;
  readonly #limit: number;

  constructor(ctx: Ctx, name: string, limit: number) {
    this.#ctx = ctx;
    this.#name = name;
    this.#limit = limit;
  }

  /** Throws `rate_limited` when the minute is used up. */
  async take(address: string): Promise<void> {
    const [count, left] = ((await this.#ctx.kv.call('EVAL', COUNT, 1, `bff:rate:${this.#name}:${address}`, WINDOW_MS)) as unknown[]).map(Number) as [number, number];
    if (count <= this.#limit) return;
    const seconds = String(Math.max(1, Math.ceil(left / 1_000)));
    throw this.#ctx.problem('rate_limited', {
      detail: `At most ${this.#limit} in a minute. Try again in ${seconds} s.`,
      headers: { 'retry-after': seconds, ratelimit: `"${this.#name}";r=0;t=${seconds}`, 'ratelimit-policy': `"${this.#name}";q=${this.#limit};w=60` },
    });
  }
}
