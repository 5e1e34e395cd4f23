import { randomUUID } from 'node:crypto';
import type { FuncContext } from '../context.ts';

/** Executions of one environment that are under way at once, over all processes (G-FUNC-06). */
const PER_ENVIRONMENT = 50;
/** Longer than an execution, and than the wait of a replay for it: a process that died gives its places back by then. */
const LEASE_S = 60;
const TAKE = `
local now = tonumber(redis.call('TIME')[1])
redis.call('ZREMRANGEBYSCORE', KEYS[1], '-inf', now)
if redis.call('ZCARD', KEYS[1]) >= tonumber(ARGV[2]) then return 0 end
redis.call('ZADD', KEYS[1], now + tonumber(ARGV[3]), ARGV[1])
redis.call('EXPIRE', KEYS[1], ARGV[3])
return 1`;

export const slotsKey = (env: string): string => `func:executions:${env}`;

/**
 * Places for executions, counted in the key-value store for all processes and here for this one: while the store is away, each process
 * holds the bound by itself.
 */
export class ExecutionSlots {
  readonly #ctx: FuncContext;
  readonly #here = new Map<string, number>();

  constructor(ctx: FuncContext) {
    this.#ctx = ctx;
  }

  /** A place until it is disposed of. Throws `too_many_executions`. */
  async take(env: string): Promise<Disposable> {
    const here = this.#here.get(env) ?? 0;
    if (here >= PER_ENVIRONMENT) throw this.#refused();
    this.#here.set(env, here + 1);
    const place = randomUUID();
    const granted = await this.#ctx.kv.call('EVAL', TAKE, 1, slotsKey(env), place, PER_ENVIRONMENT, LEASE_S).catch(err => {
      this.#ctx.log.warn({ err }, 'executions are counted in this process alone: the store does not answer');
      return 1;
    });
    if (Number(granted) === 1) return { [Symbol.dispose]: () => this.#leave(env, place) };
    this.#left(env);
    throw this.#refused();
  }

  #leave(env: string, place: string): void {
    this.#left(env);
    // Where that fails the place is free when its time is over.
    void this.#ctx.kv.call('ZREM', slotsKey(env), place).catch(() => undefined);
  }

  #left(env: string): void {
    const left = (this.#here.get(env) ?? 1) - 1;
    if (left > 0) this.#here.set(env, left);
    else this.#here.delete(env);
  }

  #refused(): Error {
    return this.#ctx.problem('too_many_executions', {
      detail: `At most ${PER_ENVIRONMENT} at once in one environment.`,
      headers: { 'retry-after': '1' },
    });
  }
}
