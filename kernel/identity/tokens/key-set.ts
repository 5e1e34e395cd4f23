import { createPublicKey } from 'node:crypto';
import type { VerificationKey } from '@platform/sdk';

type Jwk = JsonWebKey & { kid?: string; alg?: string };

const MAX_AGE_MS = 5 * 60_000;
const REFETCH_MS = 10_000;

/** The identity service's public keys: cached five minutes; an unknown `kid` asks again at most every ten seconds (G-K-06 step 3). */
export class KeySet {
  readonly #fetch: () => Promise<{ keys: readonly Jwk[] }>;
  readonly #now: () => number;
  #keys = new Map<string, VerificationKey>();
  #fetchedAt = Number.NEGATIVE_INFINITY;
  #inFlight: Promise<void> | undefined;

  constructor(fetch: () => Promise<{ keys: readonly Jwk[] }>, now: () => number = Date.now) {
    this.#fetch = fetch;
    this.#now = now;
  }

  async find(kid: string): Promise<VerificationKey | undefined> {
    const age = this.#now() - this.#fetchedAt;
    const known = this.#keys.get(kid);
    if (known && age < MAX_AGE_MS) return known;
    if (known || age >= REFETCH_MS) {
      try {
        await (this.#inFlight ??= this.#refresh().finally(() => {
          this.#inFlight = undefined;
        }));
      } catch (error) {
        // An identity outage must not invalidate what was verified before it.
        if (!known) throw error;
      }
    }
    return this.#keys.get(kid);
  }

  async #refresh(): Promise<void> {
    const { keys } = await this.#fetch();
    this.#keys = new Map(
      keys.flatMap(jwk =>
        jwk.kid && jwk.alg ? [[jwk.kid, { key: createPublicKey({ key: jwk, format: 'jwk' }), alg: jwk.alg }] as const] : [],
      ),
    );
    this.#fetchedAt = this.#now();
  }
}
