import type { Logger } from '@platform/sdk';
import type { Clock } from '../../base/clock.ts';
import type { ConsumerBus, Lost, StreamEntry } from './consumer-bus.ts';
import type { Refusal } from './consumer-bus.ts';

/** A third of the bus's minute: two of three words may be lost. */
const WORD_EVERY_MS = 20_000;

/**
 * Entries that were read and are not settled: as long as they are here the bus hears that they are being worked on, so that nobody else
 * is given the same (H-21). Life of an entry: held → settled, or lost to another consumer.
 */
export class Leaseholder implements Disposable {
  readonly #parts: { bus: ConsumerBus; log: Logger; name: string; group: string; consumer: string };
  readonly #held = new Map<string, StreamEntry>();
  readonly #word: Disposable;
  readonly #done: StreamEntry[] = [];
  #telling: Promise<void> | undefined;

  constructor({ clock, ...parts }: { bus: ConsumerBus; log: Logger; clock: Clock; name: string; group: string; consumer: string }) {
    this.#parts = parts;
    this.#word = clock.every(WORD_EVERY_MS, () => this.#stillAtWork());
  }

  get size(): number {
    return this.#held.size;
  }

  hold(entries: readonly StreamEntry[]): void {
    for (const entry of entries) this.#held.set(keyOf(entry), entry);
  }

  /** False once another consumer has it. */
  holds(entry: StreamEntry): boolean {
    return this.#held.has(keyOf(entry));
  }

  /** Resolves when the bus has taken it, together with whatever else was acknowledged while the call before was under way. */
  ack(entry: StreamEntry): Promise<void> {
    this.#held.delete(keyOf(entry));
    this.#done.push(entry);
    return (this.#telling ??= this.#tell());
  }

  async nack(entry: StreamEntry, refusal: Refusal): Promise<void> {
    this.#held.delete(keyOf(entry));
    this.#told(entry, await this.#parts.bus.nack({ ...this.#where(entry, [entry.message_id]), ...refusal }));
  }

  /** Lets go of everything: the next reader gets it. */
  drop(): void {
    this.#held.clear();
  }

  async #tell(): Promise<void> {
    // What is acknowledged in this very turn goes along.
    await undefined;
    try {
      while (this.#done.length > 0) for (const entries of byStream(this.#done.splice(0))) await this.#tellOf(entries);
    } finally {
      // In the same turn as the last look: who acknowledges in the next one begins anew.
      this.#telling = undefined;
    }
  }

  async #tellOf(entries: readonly StreamEntry[]): Promise<void> {
    const [first] = entries as [StreamEntry, ...StreamEntry[]];
    const message_ids = entries.map(({ message_id }) => message_id);
    this.#told(first, await this.#parts.bus.ack(this.#where(first, message_ids)));
  }

  /** A lost lease does no harm where the effect is marked; that it happened is worth a line. */
  #told({ event_type, message_id }: StreamEntry, { lost = [] }: Lost): void {
    if (lost.length > 0)
      this.#parts.log.warn({ consumer: this.#parts.name, event_type, message_id }, 'another consumer had taken the event meanwhile');
  }

  async #stillAtWork(): Promise<void> {
    const { bus, log, name } = this.#parts;
    for (const entries of byStream(this.#held.values())) {
      const [first] = entries as [StreamEntry, ...StreamEntry[]];
      const message_ids = entries.map(({ message_id }) => message_id);
      try {
        const { lost = [] } = await bus.extend(this.#where(first, message_ids));
        for (const message_id of lost) this.#held.delete(keyOf({ ...first, message_id }));
      } catch (error) {
        log.debug({ consumer: name, err: error }, 'the bus did not hear that events are still worked on');
      }
    }
  }

  #where({ env_id, stream_family }: StreamEntry, message_ids: readonly string[]) {
    const { group, consumer } = this.#parts;
    return { env_id, stream_family, consumer_group: group, consumer, message_ids };
  }

  [Symbol.dispose](): void {
    this.#word[Symbol.dispose]();
    this.#held.clear();
  }
}

const keyOf = ({ env_id, stream_family, message_id }: Pick<StreamEntry, 'env_id' | 'stream_family' | 'message_id'>): string =>
  `${env_id}\n${stream_family}\n${message_id}`;
const byStream = (entries: Iterable<StreamEntry>): StreamEntry[][] => [
  ...Map.groupBy(entries, ({ env_id, stream_family }) => `${env_id}\n${stream_family}`).values(),
];
