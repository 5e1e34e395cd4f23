import type { StreamItem } from '@platform/sdk';

const MAX_WAITING = 256;

/** What goes on, for everybody who listens: nothing is kept for those who come later, and who reads too slowly loses the oldest. */
export class ProgressStream {
  readonly #readers = new Set<{ items: StreamItem[]; wake: () => void }>();
  #ended = false;

  say(event: 'progress' | 'alert' | 'done', data: unknown): void {
    for (const reader of this.#readers) {
      reader.items.push({ event, data });
      if (reader.items.length > MAX_WAITING) reader.items.shift();
      reader.wake();
    }
  }

  /** Everything that is said from now on, behind `first`. */
  async *read(signal: AbortSignal, first: readonly StreamItem[] = []): AsyncGenerator<StreamItem> {
    const reader = { items: [...first], wake: () => undefined as void };
    this.#readers.add(reader);
    try {
      while (!signal.aborted) {
        const next = reader.items.shift();
        if (next) {
          yield next;
          continue;
        }
        if (this.#ended) return;
        const { promise, resolve } = Promise.withResolvers<void>();
        reader.wake = resolve;
        signal.addEventListener('abort', () => resolve(), { once: true });
        await promise;
      }
    } finally {
      this.#readers.delete(reader);
    }
  }

  /** A reader gets what is left, and the end. */
  end(): void {
    this.#ended = true;
    for (const reader of this.#readers) reader.wake();
  }
}
