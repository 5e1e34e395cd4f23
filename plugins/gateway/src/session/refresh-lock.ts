import { setTimeout as delay } from 'node:timers/promises';
import type { Ctx } from '../context.ts';

const LEASE_MS = 10_000;
const RENEW_MS = 3_000;
const LOOK_MS = 50;
const PATIENCE_MS = 30_000;
const IF_MINE = `if redis.call('GET', KEYS[1]) == ARGV[1] then `;
const RENEW = `${IF_MINE}return redis.call('PEXPIRE', KEYS[1], ARGV[2]) end return 0`;
const RELEASE = `${IF_MINE}return redis.call('DEL', KEYS[1]) end return 0`;

/** Lets one process do a piece of work while the others wait for its result (G-BFF-02: lock 10 s, renewed while the call runs). */
export class RefreshLock {
  readonly #ctx: Ctx;

  constructor(ctx: Ctx) {
    this.#ctx = ctx;
  }

  /** `done` says what another holder has achieved; `work` runs under the lock and looks for itself first. */
  async once<T>(name: string, { done, work }: { done: () => Promise<T | undefined>; work: () => Promise<T> }): Promise<T> {
    const { kv } = this.#ctx;
    const key = `bff:refresh:${name}`;
    const mine = this.#ctx.platform.newId();
    const until = performance.now() + PATIENCE_MS;
    while ((await kv.call('SET', key, mine, 'NX', 'PX', LEASE_MS)) === null) {
      const result = await done();
      if (result !== undefined) return result;
      if (performance.now() > until) throw this.#ctx.problem('identity_unavailable', { detail: 'The tokens are being renewed for too long.', headers: { 'retry-after': '2' } });
      await delay(LOOK_MS);
    }
    const renewal = setInterval(() => void kv.call('EVAL', RENEW, 1, key, mine, LEASE_MS).catch(() => undefined), RENEW_MS);
    try {
      return await work();
    } finally {
      clearInterval(renewal);
      // A lock that cannot be given back runs out by itself.
      await kv.call('EVAL', RELEASE, 1, key, mine).catch(() => undefined);
    }
  }
}
