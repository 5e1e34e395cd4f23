const RATE = 200;
const BURST = 400;
/** Who was quiet for long enough is as good as new. */
const MOST_CLIENTS = 2_000;

/** A bucket for each producing client: 200 messages a second, 400 at once (G-K-19). */
export class SendRate {
  readonly #buckets = new Map<string, { tokens: number; at: number }>();
  readonly #now: () => number;

  constructor(now: () => number) {
    this.#now = now;
  }

  /** Takes one message of a client. @returns seconds to wait when there is none left */
  take(client: string): number | undefined {
    const now = this.#now();
    const known = this.#buckets.get(client);
    const tokens = known ? Math.min(BURST, known.tokens + ((now - known.at) / 1_000) * RATE) : BURST;
    this.#buckets.delete(client);
    this.#buckets.set(client, { tokens: tokens >= 1 ? tokens - 1 : tokens, at: now });
    if (this.#buckets.size > MOST_CLIENTS) this.#buckets.delete(this.#buckets.keys().next().value as string);
    return tokens >= 1 ? undefined : Math.max(1, Math.ceil((1 - tokens) / RATE));
  }
}
