import type { CacheOptions } from '@platform/sdk';
import { expect, test } from 'vitest';
import { TimedCache } from '@platform/testing';
import { EdgeSettings } from '../../src/policy/edge-settings.ts';

test('an administration that cannot be read switches off no screening that an environment asked for', async () => {
  let [now, fails] = [0, false];
  const warned: unknown[] = [];
  const ctx = {
    cache: <V>(options: CacheOptions<V>) => new TimedCache(options, () => now),
    config: { waf: 'off', wafLargeBodies: true, rateLimit: false, rateLimitRps: 100 },
    log: { warn: (fields: unknown) => warned.push(fields) },
    policy: {
      attributes: async () =>
        fails
          ? Promise.reject(new Error('gone'))
          : { waf_mode: 'block', rate_limit_enabled: true, rate_limit_rps: 5, wafLargeBodies: true },
    },
  };
  const settings = new EdgeSettings(ctx as never);
  expect(await settings.of('env-1')).toEqual({ waf: 'block', limited: true, rps: 5, wafLargeBodies: true });
  [now, fails] = [60_000, true];
  expect(await settings.of('env-1')).toEqual({ waf: 'block', limited: true, rps: 5, wafLargeBodies: true });
  expect(await settings.of('env-2')).toEqual({ waf: 'off', limited: false, rps: 100, wafLargeBodies: true });
  expect(warned).toHaveLength(2);
  [now, fails] = [120_000, false];
  expect(await settings.of('env-2')).toEqual({ waf: 'block', limited: true, rps: 5, wafLargeBodies: true });
});
