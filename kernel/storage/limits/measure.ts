import type { BucketOptions, Counted, WindowOptions } from '@platform/sdk';

/** What a limit allows, whichever way it is counted. */
export interface Measure {
  readonly name: string;
  readonly max: number;
  /** How long `max` takes to come back. */
  readonly seconds: number;
  /** Of a bucket alone. */
  readonly perSecond: number | undefined;
}

export function measureOf(options: WindowOptions | BucketOptions): Measure {
  const { name } = options;
  if ('max' in options) return { name, max: options.max, seconds: options.seconds, perSecond: undefined };
  const { burst, perSecond } = options;
  return { name, max: burst, seconds: Math.max(1, Math.ceil(burst / perSecond)), perSecond };
}

/** The outcome in the words of G-K-19. */
export function counted({ name, max, seconds }: Measure, allowed: boolean, left: number, waitMs: number): Counted {
  const retryAfterSeconds = Math.max(1, Math.ceil(waitMs / 1_000));
  const remaining = Math.max(0, Math.floor(left));
  return {
    allowed,
    left: remaining,
    retryAfterSeconds,
    get headers() {
      return {
        'retry-after': String(retryAfterSeconds),
        ratelimit: `"${name}";r=${remaining};t=${retryAfterSeconds}`,
        'ratelimit-policy': `"${name}";q=${max};w=${seconds}`,
      };
    },
  };
}
