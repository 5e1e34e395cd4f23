import { createHash } from 'node:crypto';
import type { Counted, KeyValue, Limit, LimitOptions, Logger } from '@platform/sdk';
import { kernelProblem } from '../../base/kernel-problem.ts';
import { counted, type Measure, measureOf } from './measure.ts';

/** Adds to the count of a window, which begins with the first; of `partial` no more than there is room for. Answers what was added. */
const WINDOW = `
local cost = tonumber(ARGV[2])
if ARGV[4] == 'partial' then cost = math.max(0, math.min(cost, tonumber(ARGV[3]) - tonumber(redis.call('GET', KEYS[1]) or 0))) end
local count = redis.call('INCRBY', KEYS[1], cost)
local left = redis.call('PTTL', KEYS[1])
if left < 0 then
  redis.call('PEXPIRE', KEYS[1], ARGV[1])
  left = tonumber(ARGV[1])
end
return { count, left, cost }`;

/** Takes from a bucket, on the store's own clock: all that is asked for or nothing, and of `partial` as much as there is. */
const BUCKET = `
local rate, burst, asked = tonumber(ARGV[1]), tonumber(ARGV[2]), tonumber(ARGV[3])
local time = redis.call('TIME')
local now = tonumber(time[1]) + tonumber(time[2]) / 1000000
local bucket = redis.call('HMGET', KEYS[1], 'tokens', 'at')
local tokens = math.min(burst, (tonumber(bucket[1]) or burst) + math.max(0, now - (tonumber(bucket[2]) or now)) * rate)
local granted = math.min(asked, math.floor(tokens))
if granted < asked and ARGV[4] ~= 'partial' then granted = 0 end
redis.call('HSET', KEYS[1], 'tokens', tostring(tokens - granted), 'at', string.format('%.6f', now))
redis.call('EXPIRE', KEYS[1], math.ceil(burst / rate) + 1)
return { granted, tostring(tokens - granted) }`;

/** Takes of one key that go to the store together. */
interface Batch {
  cost: number;
  readonly answer: Promise<readonly number[]>;
}

/**
 * How much for each key, counted in the key-value store for all processes together (G-K-19). Its own two scripts and no library:
 * rate-limiter-flexible knows no bucket, takes all or nothing, and wants a client of the store, which plugins do not have.
 */
export class RateLimit implements Limit {
  readonly #kv: Pick<KeyValue, 'call'>;
  readonly #service: string;
  readonly #log: Logger;
  readonly #measure: Measure;
  readonly #admits: boolean;
  readonly #waiting = new Map<string, Batch>();
  readonly #sending = new Map<string, Promise<unknown>>();

  constructor(kv: Pick<KeyValue, 'call'>, service: string, log: Logger, options: LimitOptions) {
    this.#kv = kv;
    this.#service = service;
    this.#log = log;
    this.#measure = measureOf(options);
    this.#admits = options.whenAway !== 'refuse';
  }

  async take(key: string, cost = 1): Promise<Counted> {
    const { max, perSecond } = this.#measure;
    if (perSecond === undefined) {
      const { count, leftMs } = await this.#count(key, cost);
      return counted(this.#measure, count <= max, max - count, leftMs);
    }
    const [granted = 0, left = 0] = (await this.#ask(BUCKET, key, [perSecond, max, cost, 'all'])) ?? [cost, max];
    return counted(this.#measure, granted >= cost, left, ((cost - left) / perSecond) * 1_000);
  }

  async require(key: string, cost = 1): Promise<void> {
    const { allowed, headers, retryAfterSeconds } = await this.take(key, cost);
    if (allowed) return;
    const { max, seconds } = this.#measure;
    throw kernelProblem('rate_limited', {
      detail: `At most ${max} in ${seconds === 60 ? 'a minute' : `${seconds} s`}. Try again in ${retryAfterSeconds} s.`,
      headers,
    });
  }

  async takeUpTo(key: string, most: number): Promise<number> {
    const { max, seconds, perSecond } = this.#measure;
    if (perSecond !== undefined) return (await this.#ask(BUCKET, key, [perSecond, max, most, 'partial']))?.[0] ?? most;
    return (await this.#ask(WINDOW, key, [seconds * 1_000, most, max, 'partial']))?.[2] ?? most;
  }

  /** Counts in a window. What comes for a key while an answer for it is under way shares the next round trip. */
  async #count(key: string, cost: number): Promise<{ count: number; leftMs: number }> {
    let batch = this.#waiting.get(key);
    if (!batch) {
      const made: Batch = { cost: 0, answer: this.#turn(key).then(() => this.#send(key, made)) };
      this.#waiting.set(key, (batch = made));
    }
    batch.cost += cost;
    const mine = batch.cost;
    const [count = 0, leftMs = 0] = await batch.answer;
    return { count: count - batch.cost + mine, leftMs };
  }

  async #turn(key: string): Promise<void> {
    await this.#sending.get(key)?.catch(() => undefined);
  }

  #send(key: string, batch: Batch): Promise<readonly number[]> {
    this.#waiting.delete(key);
    const { max, seconds } = this.#measure;
    const sent = this.#ask(WINDOW, key, [seconds * 1_000, batch.cost, max, 'all']).then(answer => answer ?? [0, 0]);
    this.#sending.set(key, sent);
    const done = () => void (this.#sending.get(key) === sent && this.#sending.delete(key));
    sent.then(done, done);
    return sent;
  }

  /** What the store answers; nothing where it is away and everybody is let through. */
  async #ask(script: string, key: string, given: readonly (string | number)[]): Promise<readonly number[] | undefined> {
    const { name } = this.#measure;
    try {
      const answer = await this.#kv.call('EVAL', script, 1, `${this.#service}:rate:${name}:${bounded(key)}`, ...given);
      return (answer as unknown[]).map(Number);
    } catch (error) {
      if (!this.#admits) throw error;
      this.#log.warn({ err: error, limit: name }, 'a limit could not be counted; nobody is refused meanwhile');
      return undefined;
    }
  }
}

/** A key that somebody else chose takes no more room than any other. */
const bounded = (key: string): string => (key.length <= 100 ? key : createHash('sha256').update(key).digest('base64url'));
