/** Changes of a state, for code that waits until it is as it should be. */
export class Changes {
  readonly #listeners = new Set<() => void>();

  tell(): void {
    for (const listener of [...this.#listeners]) listener();
  }

  /** Resolves when `done` says so of the present state, or when the signal ends. */
  async until(done: () => boolean, signal: AbortSignal): Promise<boolean> {
    while (!done() && !signal.aborted) {
      const { promise, resolve } = Promise.withResolvers<void>();
      this.#listeners.add(resolve);
      const heard = () => resolve();
      signal.addEventListener('abort', heard, { once: true });
      await promise;
      signal.removeEventListener('abort', heard);
      this.#listeners.delete(resolve);
    }
    return done();
  }
}
