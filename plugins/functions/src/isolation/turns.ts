/** Nobody more may wait. */
export class Crowded extends Error {}

/** Lets so many in at once and so many wait, in their order. */
export class Turns {
  readonly #atOnce: number;
  readonly #mostWaiting: number;
  readonly #waiting: (() => void)[] = [];
  #inside = 0;

  constructor(atOnce: number, mostWaiting: number) {
    [this.#atOnce, this.#mostWaiting] = [atOnce, mostWaiting];
  }

  /** A caller that took a turn gives it back by disposing of it. Throws {@link Crowded}. */
  async take(): Promise<Disposable> {
    if (this.#inside < this.#atOnce) this.#inside += 1;
    else if (this.#waiting.length >= this.#mostWaiting) throw new Crowded(`${this.#mostWaiting} wait already.`);
    // The turn is handed on: nobody comes between.
    else await new Promise<void>(resolve => this.#waiting.push(resolve));
    return { [Symbol.dispose]: () => this.#leave() };
  }

  #leave(): void {
    const next = this.#waiting.shift();
    if (next) next();
    else this.#inside -= 1;
  }
}
