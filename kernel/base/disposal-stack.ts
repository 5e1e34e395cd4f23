/** Owns resources and releases them newest first; a failing release does not keep the others open. */
export class DisposalStack implements AsyncDisposable {
  readonly #owned: (Disposable | AsyncDisposable)[] = [];

  own<T extends Disposable | AsyncDisposable>(resource: T): T {
    this.#owned.push(resource);
    return resource;
  }

  defer(release: () => void | Promise<void>): void {
    this.#owned.push({ [Symbol.asyncDispose]: async () => release() });
  }

  async [Symbol.asyncDispose](): Promise<void> {
    const errors: unknown[] = [];
    for (let resource = this.#owned.pop(); resource; resource = this.#owned.pop()) {
      try {
        if (Symbol.asyncDispose in resource) await resource[Symbol.asyncDispose]();
        else resource[Symbol.dispose]();
      } catch (error) {
        errors.push(error);
      }
    }
    if (errors.length > 0) throw new AggregateError(errors, 'some resources did not close');
  }
}
