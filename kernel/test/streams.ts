import type { StreamEntry } from '../outbox/consumption/consumer-bus.ts';

interface Consumed {
  readonly body: {
    stream_family: string;
    consumer_group: string;
    message_ids?: string[];
    dead_letter?: boolean;
    retry_after_secs?: number;
    reason?: string;
  };
  readonly signal: AbortSignal;
}

/** The consuming half of an event bus, held by the test: entries are given out when the test says so. */
export class Streams {
  readonly #waiting = new Map<string, (entries: StreamEntry[]) => void>();
  readonly #queued = new Map<string, StreamEntry[]>();
  readonly #settled: { how: 'ack' | 'nack'; body: Consumed['body'] }[] = [];
  readonly #watchers = new Set<() => void>();
  #next = 0;

  /** Answers of the bus, for the stubs of `boot`. */
  readonly stub = {
    consume: ({ body, signal }: Consumed) => this.#consume(body.stream_family, signal).then(entries => ({ entries })),
    ack: ({ body }: Consumed) => this.#settle('ack', body),
    nack: ({ body }: Consumed) => this.#settle('nack', body),
  };

  /** Puts one event on a family and answers its id. */
  push(family: string, event: { event_type: string; env_id: string; payload: object } & Partial<StreamEntry>): string {
    const message_id = `${++this.#next}-0`;
    const entry: StreamEntry = { message_id, stream_family: family, correlation_id: 'corr-1', idempotency_key: message_id, ...event };
    const waiting = this.#waiting.get(family);
    this.#waiting.delete(family);
    if (waiting) waiting([entry]);
    else this.#queued.set(family, [...(this.#queued.get(family) ?? []), entry]);
    return message_id;
  }

  /** How an entry was settled, when it is. */
  async settled(messageId: string): Promise<{ how: 'ack' | 'nack'; body: Consumed['body'] }> {
    for (;;) {
      const found = this.#settled.find(({ body }) => body.message_ids?.includes(messageId));
      if (found) return found;
      await new Promise<void>(resolve => this.#watchers.add(resolve));
    }
  }

  async #consume(family: string, signal: AbortSignal): Promise<StreamEntry[]> {
    const queued = this.#queued.get(family);
    if (queued) {
      this.#queued.delete(family);
      return queued;
    }
    return new Promise((resolve, reject) => {
      this.#waiting.set(family, resolve);
      signal.addEventListener('abort', () => reject(signal.reason), { once: true });
    });
  }

  #settle(how: 'ack' | 'nack', body: Consumed['body']): object {
    this.#settled.push({ how, body });
    for (const wake of this.#watchers) wake();
    this.#watchers.clear();
    return {};
  }
}
