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

/** Admits mints: sixteen at work, thirty-two waiting, everybody else is sent away at once instead of stalling. */
export class MintQueue {
  #inFlight = 0;
  readonly #waiting: (() => void)[] = [];

  async run<T>(mint: () => Promise<T>): Promise<T> {
    if (this.#inFlight >= MAX_CONCURRENT_MINTS) {
      if (this.#waiting.length >= MAX_QUEUED_MINTS) throw new MintQueueFull(this.#waiting.length, this.#inFlight);
      await new Promise<void>(resolve => this.#waiting.push(resolve));
    } else this.#inFlight += 1;
    try {
      return await mint();
    } finally {
      const next = this.#waiting.shift();
      // The place goes to the next in line, so the count does not move.
      if (next) next();
      else this.#inFlight -= 1;
    }
  }
}
