export interface FairShareOptions {
  /** So many at once, of all parties together. */
  readonly total: number;
  /** So many at once of one party. */
  readonly perParty: number | ((party: string) => number);
  /** Of a party at its bound: the new one is refused, or the oldest one is ended for it. */
  readonly atBound: 'refuse' | 'end oldest';
}

interface Held {
  readonly end: () => void;
}

/**
 * Places for what lasts: streams, slow bodies. A party at its bound is refused, or loses its oldest; when all places are taken, the party
 * that holds most loses its oldest, so that nobody takes the places of others.
 */
export class FairShare {
  readonly #options: FairShareOptions;
  readonly #held = new Map<string, Set<Held>>();
  #size = 0;
  #refused = 0;
  #ended = 0;

  constructor(options: FairShareOptions) {
    this.#options = options;
  }

  get size(): number {
    return this.#size;
  }

  /** How many were refused, and how many ended for others, since the start. */
  get outcomes(): { readonly refused: number; readonly ended: number } {
    return { refused: this.#refused, ended: this.#ended };
  }

  /** A place until it is disposed; `end` is called when somebody else needs it more. `undefined`: there is none for this party. */
  admit(party: string, end: () => void): Disposable | undefined {
    const { total, perParty, atBound } = this.#options;
    const own = this.#held.get(party)?.size ?? 0;
    const refuses = atBound === 'refuse';
    if (own >= (typeof perParty === 'number' ? perParty : perParty(party))) {
      if (refuses || own === 0) return this.#refuse();
      this.#endOldest(party);
    } else if (this.#size >= total) {
      const largest = this.#largest();
      if (own >= (this.#held.get(largest)?.size ?? 0) && refuses) return this.#refuse();
      this.#endOldest(largest);
    }
    return this.#hold(party, { end });
  }

  #hold(party: string, held: Held): Disposable {
    let own = this.#held.get(party);
    if (!own) this.#held.set(party, (own = new Set()));
    own.add(held);
    this.#size += 1;
    return { [Symbol.dispose]: () => this.#release(party, held) };
  }

  #release(party: string, held: Held): void {
    const own = this.#held.get(party);
    if (!own?.delete(held)) return;
    this.#size -= 1;
    if (own.size === 0) this.#held.delete(party);
  }

  #refuse(): undefined {
    this.#refused += 1;
    return undefined;
  }

  #endOldest(party: string): void {
    const [oldest] = this.#held.get(party) ?? [];
    if (!oldest) return;
    this.#release(party, oldest);
    this.#ended += 1;
    oldest.end();
  }

  #largest(): string {
    let [largest, most] = ['', 0];
    for (const [party, { size }] of this.#held) if (size > most) [largest, most] = [party, size];
    return largest;
  }
}
