import { BoundedMap } from '@platform/sdk';
interface Bucket {
  tokens: number;
  at: number;
}

const MOST = 100_000;

/**
 * Token buckets by party, in memory alone (ING-008): as many at once as two seconds give, at most 100,000 buckets; the one used longest ago
 * goes first.
 */
export class RequestRates {
  readonly #buckets = new BoundedMap<string, Bucket>(MOST);
  #refused = 0;

  get figures(): { readonly rate_buckets: number; readonly rate_limited_total: number } {
    return { rate_buckets: this.#buckets.size, rate_limited_total: this.#refused };
  }

  /** Takes one request's worth. `false`: the bucket is empty. */
  take(party: string, rps: number, now: number): boolean {
    const burst = rps * 2;
    const known = this.#buckets.get(party);
    const bucket = known ?? { tokens: burst, at: now };
    bucket.tokens = Math.min(burst, bucket.tokens + (Math.max(0, now - bucket.at) * rps) / 1_000);
    bucket.at = now;
    this.#buckets.set(party, bucket);
    if (bucket.tokens < 1) {
      this.#refused += 1;
      return false;
    }
    bucket.tokens -= 1;
    return true;
  }
}

/** What a refused client is told (G-PROXY-04, G-K-19). */
export const rateHeaders = (rps: number): Readonly<Record<string, string>> => ({
  'retry-after': '1',
  ratelimit: '"edge";r=0;t=1',
  'ratelimit-policy': `"edge";q=${rps * 2};w=2`,
});
