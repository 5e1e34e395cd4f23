const TICK_MS = 1_000;

/**
 * How long a run waits for what must come, in seconds that this process was there for: one that was halted itself has lost nothing of
 * anybody's.
 */
export class Patience implements Disposable {
  #left: number;
  readonly #timer: NodeJS.Timeout;

  constructor(seconds: number) {
    this.#left = seconds;
    this.#timer = setInterval(() => {
      this.#left -= 1;
    }, TICK_MS).unref();
  }

  get ended(): boolean {
    return this.#left <= 0;
  }

  [Symbol.dispose](): void {
    clearInterval(this.#timer);
  }
}
