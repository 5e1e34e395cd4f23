/**
 * A signal that aborts when its time is up (with a `TimeoutError`) or another one aborts (with that one's reason). `AbortSignal.any` and
 * `.timeout` hold theirs by weak references, which keep all that a call knew until the next full collection; this one is gone with its
 * call.
 */
export class Deadline implements Disposable {
  readonly #ended = new AbortController();
  readonly #outer: AbortSignal | undefined;
  readonly #timer: NodeJS.Timeout;
  readonly #follow = (): void => this.#ended.abort(this.#outer?.reason);

  constructor(ms: number, outer?: AbortSignal) {
    this.#outer = outer;
    this.#timer = setTimeout(() => this.#ended.abort(new DOMException(`nothing came within ${ms} ms`, 'TimeoutError')), ms).unref();
    if (outer?.aborted) this.#follow();
    else outer?.addEventListener('abort', this.#follow, { once: true });
  }

  get signal(): AbortSignal {
    return this.#ended.signal;
  }

  [Symbol.dispose](): void {
    clearTimeout(this.#timer);
    this.#outer?.removeEventListener('abort', this.#follow);
  }
}
