/** Ends the patience with a process that has begun to give signs of life and gives none any more. */
export class Heartbeat {
  readonly #ms: number;
  readonly #silent: () => void;
  #timer: NodeJS.Timeout | undefined;

  constructor(ms: number, silent: () => void) {
    this.#ms = ms;
    this.#silent = silent;
  }

  beat(): void {
    if (this.#timer) this.#timer.refresh();
    else this.#timer = setTimeout(this.#silent, this.#ms).unref();
  }

  end(): void {
    clearTimeout(this.#timer);
  }
}
