import { SYSTEM } from '@platform/sdk';
import type { EventBusContext } from '../context.ts';
import { rateKey } from '../stream/names.ts';

const FRESH_MS = 2_000;

/** One bucket per environment for all processes, on the store's own clock. Answers how many of the asked events pass. */
const TAKE = `
local rate, burst, asked = tonumber(ARGV[1]), tonumber(ARGV[2]), tonumber(ARGV[3])
local time = redis.call('TIME')
local now = tonumber(time[1]) + tonumber(time[2]) / 1000000
local bucket = redis.call('HMGET', KEYS[1], 'tokens', 'at')
local tokens = math.min(burst, (tonumber(bucket[1]) or burst) + math.max(0, now - (tonumber(bucket[2]) or now)) * rate)
local granted = math.min(asked, math.floor(tokens))
redis.call('HSET', KEYS[1], 'tokens', tostring(tokens - granted), 'at', string.format('%.6f', now))
redis.call('EXPIRE', KEYS[1], math.ceil(burst / rate) + 1)
return granted`;

/** Whether verticals may produce into an environment now: not while it is suspended, and not faster than its bucket. */
export class Admission {
  readonly #ctx: EventBusContext;
  #suspended: ReadonlySet<string> = new Set();
  #readAt = Number.NEGATIVE_INFINITY;

  constructor(ctx: EventBusContext) {
    this.#ctx = ctx;
  }

  async isSuspended(env: string): Promise<boolean> {
    const now = this.#ctx.clock.now().getTime();
    if (now - this.#readAt >= FRESH_MS) {
      this.#readAt = now;
      const rows = await this.#ctx.db.sql<{ env_id: string }[]>`select env_id from suspended_environments`;
      this.#suspended = new Set(rows.map(({ env_id }) => env_id));
    }
    return this.#suspended.has(env);
  }

  /** How many of `asked` events pass. Without the store nothing is counted: the append would fail anyway. */
  async take(env: string, asked: number): Promise<number> {
    const { kv, config, log } = this.#ctx;
    try {
      return Number(await kv.call('EVAL', TAKE, 1, rateKey(env), config.produceRate, config.produceBurst, asked));
    } catch (error) {
      log.warn({ err: error }, 'the rate of produced events is not counted');
      return asked;
    }
  }

  /** What the registry says about an environment. */
  async environmentChanged(payload: Readonly<Record<string, unknown>>): Promise<void> {
    const { env_id, status } = payload;
    if (typeof env_id !== 'string' || env_id === SYSTEM.envId) return;
    await this.#ctx.db.tx(async ({ sql }) => {
      if (status === 'suspended') await sql`insert into suspended_environments (env_id) values (${env_id}) on conflict do nothing`;
      else await sql`delete from suspended_environments where env_id = ${env_id}`;
    });
    this.#readAt = Number.NEGATIVE_INFINITY;
  }
}
