/** Asks after a pause, and reports only the answer to the last question, in whatever order answers come. */
export class LatestOnly<Q, A> {
  readonly #ask: (question: Q, signal: AbortSignal) => Promise<A>;
  readonly #pause: number;
  #current: AbortController | undefined;

  constructor(ask: (question: Q, signal: AbortSignal) => Promise<A>, pause = 300) {
    this.#ask = ask;
    this.#pause = pause;
  }

  ask(question: Q, answered: (answer: A) => void, failed: (error: unknown) => void): void {
    this.cancel();
    const current = new AbortController();
    this.#current = current;
    const timer = setTimeout(async () => {
      try {
        const answer = await this.#ask(question, current.signal);
        if (!current.signal.aborted) answered(answer);
      } catch (error) {
        if (!current.signal.aborted) failed(error);
      }
    }, this.#pause);
    current.signal.addEventListener('abort', () => clearTimeout(timer), { once: true });
  }

  cancel(): void {
    this.#current?.abort();
    this.#current = undefined;
  }
}
