import type { ServerResponse } from 'node:http';

/**
 * What the requests of a service end by. Each has a signal of its own: one made of several would keep its request until the next full
 * collection.
 */
export class Lifetimes {
  readonly #stopping = new AbortController();
  readonly #lasting = new Set<AbortController>();

  /** Ends what would otherwise last: long polls, event streams, sockets. */
  end(): void {
    this.#stopping.abort();
    for (const ended of this.#lasting) ended.abort();
  }

  /** Calls back when the service stops, unless `unless` comes first. */
  atEnd(act: () => void, unless: AbortSignal): void {
    this.#stopping.signal.addEventListener('abort', act, { once: true, signal: unless });
  }

  /** Aborts when the client goes before its answer, or the service stops. Made when first asked for: most handlers never do. */
  of(res: ServerResponse): () => AbortSignal {
    let ended: AbortController | undefined;
    return () => {
      if (ended) return ended.signal;
      const made = new AbortController();
      ended = made;
      if (res.closed || this.#stopping.signal.aborted) made.abort();
      else {
        this.#lasting.add(made);
        res.once('close', () => {
          this.#lasting.delete(made);
          if (!res.writableFinished) made.abort();
        });
      }
      return made.signal;
    };
  }
}
