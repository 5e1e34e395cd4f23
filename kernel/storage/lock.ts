import { setTimeout as delay } from 'node:timers/promises';
import { type KeyValue, type Lock, type Logger, milliseconds } from '@platform/sdk';
import { newId } from '../base/ids.ts';

const LOOK_MS = 50;
const IF_MINE = `if redis.call('GET', KEYS[1]) == ARGV[1] then `;
const RENEW = `${IF_MINE}return redis.call('PEXPIRE', KEYS[1], ARGV[2]) end return 0`;
const RELEASE = `${IF_MINE}return redis.call('DEL', KEYS[1]) end return 0`;

/** Locks of one service in the key-value store, each with one holder among all processes. */
export function locksOf(kv: Pick<KeyValue, 'call'>, service: string, log: Logger): Lock {
  return async (name, { ttl, wait }, work) => {
    const [key, mine, lease] = [`${service}:lock:${name}`, newId(), milliseconds(ttl)];
    if (lease < 1_000) throw new Error(`the lock ${name} lasts ${ttl}; a renewal needs at least 1s`);
    const until = performance.now() + (wait === undefined ? 0 : milliseconds(wait));
    let since = performance.now();
    while ((await kv.call('SET', key, mine, 'NX', 'PX', lease)) === null) {
      if (performance.now() >= until) return { held: false };
      await delay(LOOK_MS);
      since = performance.now();
    }
    const lost = new AbortController();
    const renew = async (): Promise<void> => {
      const asked = performance.now();
      // A store that does not answer leaves the lock to its time.
      const kept = await kv.call('EVAL', RENEW, 1, key, mine, lease).then(Number, () => undefined);
      if (kept === 1) since = asked;
      else if ((kept === 0 || performance.now() - since >= lease) && !lost.signal.aborted) {
        log.warn({ lock: name, code: 'lock_lost' }, 'a lock was lost while its work went on; the work is told to end');
        lost.abort();
      }
    };
    const renewal = setInterval(() => void renew(), lease / 3);
    try {
      return { held: true, value: await work(lost.signal) };
    } finally {
      clearInterval(renewal);
      // One that cannot be given back runs out by itself.
      await kv.call('EVAL', RELEASE, 1, key, mine).catch(() => undefined);
    }
  };
}
