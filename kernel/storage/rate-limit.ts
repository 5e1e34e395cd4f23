import { createHash } from 'node:crypto';
import type { Counted, KeyValue, Limit, LimitOptions, Logger } from '@platform/sdk';

const COUNT = `
local count = redis.call('INCRBY', KEYS[1], ARGV[2])
local left = redis.call('PTTL', KEYS[1])
if left < 0 then
  redis.call('PEXPIRE', KEYS[1], ARGV[1])
  left = tonumber(ARGV[1])
end
return { count, left }`;

/** So many in a window for each key, counted in the key-value store for all processes together (G-K-19). */
export class RateLimit implements Limit {
  readonly #kv: Pick<KeyValue, 'call'>;
  readonly #service: string;
  readonly #log: Logger;
  readonly #options: LimitOptions;

  constructor(kv: Pick<KeyValue, 'call'>, service: string, log: Logger, options: LimitOptions) {
    this.#kv = kv;
    this.#service = service;
    this.#log = log;
    this.#options = options;
  }

  async take(key: string, cost = 1): Promise<Counted> {
    const { name, max, seconds } = this.#options;
    const answer = await this.#kv
      .call('EVAL', COUNT, 1, `${this.#service}:rate:${name}:${bounded(key)}`, seconds * 1_000, cost)
      .catch(error => {
        this.#log.warn({ err: error, limit: name }, 'a limit could not be counted; nobody is refused meanwhile');
        return [0, 0];
      });
    const [count = 0, leftMs = 0] = (answer as unknown[]).map(Number);
    const retryAfterSeconds = Math.max(1, Math.ceil(leftMs / 1_000));
    const left = Math.max(0, max - count);
    return {
      allowed: count <= max,
      left,
      retryAfterSeconds,
      headers: {
        'retry-after': String(retryAfterSeconds),
        ratelimit: `"${name}";r=${left};t=${retryAfterSeconds}`,
        'ratelimit-policy': `"${name}";q=${max};w=${seconds}`,
      },
    };
  }
}

/** A key that somebody else chose takes no more room than any other. */
const bounded = (key: string): string => (key.length <= 100 ? key : createHash('sha256').update(key).digest('base64url'));
