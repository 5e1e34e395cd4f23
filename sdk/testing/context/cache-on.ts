import { TimedCache } from '@platform/kernel/base/cache';
import type { Context } from '@platform/sdk';

/** `ctx.cache` on a clock of the test's own, for a part that is tried without a whole service. */
export const cacheOn =
  (clock: { now(): Date }): Context<never>['cache'] =>
  options =>
    new TimedCache(options, () => clock.now().getTime());
