/** An event as browsers get it (G-BFF-08). */
export interface LiveEvent {
  readonly type: string;
  readonly payload: Readonly<Record<string, unknown>>;
  readonly env_id: string;
  readonly created_at: string;
  readonly idempotency_key: string;
}
/** What goes out on a live connection. */
export type Frame =
  | { readonly kind: 'event'; readonly event: LiveEvent }
  | { readonly kind: 'note'; readonly type: string; readonly data: Readonly<Record<string, unknown>> }
  | { readonly kind: 'ping' }
  /** Events were dropped: how many, and between which moments, so that the reader can fetch what it missed (H-22). */
  | { readonly kind: 'lag'; readonly skipped: number; readonly from: string; readonly to: string };

/** A bounded queue to one slow or fast reader. When it is full, what comes is counted instead of kept. Life: open → closed. */
export class EventChannel {
  readonly #limit: number;
  readonly #queue: Frame[] = [];
  #missed: { skipped: number; from: string; to: string } | undefined;
  #wake: (() => void) | undefined;
  #closed = false;

  constructor(limit: number) {
    this.#limit = limit;
  }

  get closed(): boolean {
    return this.#closed;
  }

  push(frame: Frame): void {
    if (this.#closed) return;
    if (this.#queue.length >= this.#limit) {
      if (frame.kind !== 'ping') this.missed(frame.kind === 'event' ? frame.event.created_at : new Date().toISOString());
      return;
    }
    if (this.#missed) this.#queue.push(this.#gap() as Frame);
    this.#queue.push(frame);
    this.#wake?.();
  }

  /** Notes that one event will not be delivered. */
  missed(at: string): void {
    const { skipped = 0, from = at } = this.#missed ?? {};
    this.#missed = { skipped: skipped + 1, from, to: at };
    this.#wake?.();
  }

  /** The next frame, or `undefined` when nothing will come any more. */
  async next(): Promise<Frame | undefined> {
    for (;;) {
      const frame = this.#queue.shift() ?? (this.#closed ? undefined : this.#gap());
      if (frame || this.#closed) return frame;
      await new Promise<void>(resolve => {
        this.#wake = resolve;
      });
      this.#wake = undefined;
    }
  }

  /** Ends the channel; a last frame goes before everything that waits. */
  close(last?: Frame): void {
    if (this.#closed) return;
    this.#closed = true;
    this.#queue.length = 0;
    if (last) this.#queue.push(last);
    this.#wake?.();
  }

  #gap(): Frame | undefined {
    const missed = this.#missed;
    this.#missed = undefined;
    return missed && { kind: 'lag', ...missed };
  }
}
