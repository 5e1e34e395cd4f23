/** Thrown when the queue is full or the wait too long. */
export class MintQueueFull extends Error {
  readonly queued: number;
  readonly inFlight: number;

  constructor(queued: number, inFlight: number) {
    super('the mint queue is full');
    this.queued = queued;
    this.inFlight = inFlight;
  }
}

/** MAX_CONCURRENT_MINTS and MAX_QUEUED_MINTS of doc3. */
export const MAX_CONCURRENT_MINTS = 16;
export const MAX_QUEUED_MINTS = 32;
export const SHED_RETRY_AFTER_S = 30;
/** Nobody waits longer for a place (G-ACME-09). */
const WAIT_MS = 60_000;

/** Admits mints: sixteen at work, thirty-two waiting, everybody else is sent away at once instead of stalling. */
export class MintQueue {
  #inFlight = 0;
  readonly #waiting = new Set<() => void>();
  #minted = 0;
  #shed = 0;

  get figures(): { in_flight: number; queued: number; minted: number; shed: number } {
    return { in_flight: this.#inFlight, queued: this.#waiting.size, minted: this.#minted, shed: this.#shed };
  }

  /** Throws {@link MintQueueFull} when there is no place, or none came free in a minute. */
  async run<T>(mint: () => Promise<T>): Promise<T> {
    if (this.#inFlight >= MAX_CONCURRENT_MINTS) await this.#wait();
    else this.#inFlight += 1;
    try {
      const made = await mint();
      this.#minted += 1;
      return made;
    } finally {
      const [next] = this.#waiting;
      // The place goes to the next in line, so the count does not move.
      if (next) next();
      else this.#inFlight -= 1;
    }
  }

  #wait(): Promise<void> {
    if (this.#waiting.size >= MAX_QUEUED_MINTS) throw this.#full();
    return new Promise((resolve, reject) => {
      const granted = () => {
        clearTimeout(late);
        this.#waiting.delete(granted);
        resolve();
      };
      const late = setTimeout(() => {
        this.#waiting.delete(granted);
        reject(this.#full());
      }, WAIT_MS);
      this.#waiting.add(granted);
    });
  }

  #full(): MintQueueFull {
    this.#shed += 1;
    return new MintQueueFull(this.#waiting.size, this.#inFlight);
  }
}
