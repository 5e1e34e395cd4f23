import { setTimeout as delay } from 'node:timers/promises';
import { isProblem, type Logger } from '@platform/sdk';
import { backoff } from '../base/backoff.ts';
import type { Clock } from '../base/clock.ts';
import { inScope } from '../telemetry/request-scope.ts';
import { AlreadyHandled, consuming } from './consumption.ts';

/** An entry as the bus hands it out (G-K-12). */
export interface StreamEntry {
  readonly message_id: string;
  readonly event_type: string;
  readonly env_id: string;
  readonly stream_family: string;
  readonly payload: object;
  readonly correlation_id: string;
  readonly idempotency_key: string;
  readonly delivery_count?: number;
  readonly replayed_from_dlq?: true;
}

/** Entries in the hands of a consumer. */
export interface Held {
  readonly env_id: string;
  readonly stream_family: string;
  readonly consumer_group: string;
  readonly consumer: string;
  readonly message_ids: readonly string[];
}
/** Those that were not its own any more: somebody else has taken them, after a minute without a word. */
export interface Lost {
  readonly lost?: readonly string[];
}

/** The bus as a consumer needs it: any environment at once, one family, one group. */
export interface ConsumerBus {
  consume(
    request: { env_id: '*'; stream_family: string; consumer_group: string; consumer: string; count: number; block_ms: number; start: 'earliest' | 'latest' },
    signal: AbortSignal,
  ): Promise<{ readonly entries: readonly StreamEntry[]; readonly gaps?: readonly object[] }>;
  ack(request: Held): Promise<Lost>;
  nack(request: Held & { retry_after_secs: number; reason: string; dead_letter?: boolean }): Promise<Lost>;
  extend(request: Held): Promise<Lost>;
  close(request: { stream_family: string; consumer_group: string }): Promise<void>;
}

export interface ConsumerOptions {
  readonly bus: ConsumerBus;
  readonly log: Logger;
  readonly service: string;
  readonly name: string;
  readonly family: string;
  /** `*`, or the one event to handle; everything else of the family is acknowledged unread. */
  readonly event: string;
  /** Shared by all processes of the service, or this process's own and gone with it. */
  readonly delivery: 'fleet' | 'process';
  readonly instance: string;
  readonly clock: Clock;
  readonly handle: (entry: StreamEntry) => Promise<void>;
  /** Writes the mark of a handler that opened no transaction; false when it was there already. */
  readonly mark?: (consumer: string, key: string) => Promise<boolean>;
}

const keyOf = ({ env_id, stream_family, message_id }: Pick<StreamEntry, 'env_id' | 'stream_family' | 'message_id'>): string => `${env_id}\n${stream_family}\n${message_id}`;

/** A replayed dead letter is the same event once more (C3, C18). */
const originalType = ({ event_type, replayed_from_dlq }: StreamEntry) => (replayed_from_dlq ? event_type.replace(/\.replayed$/, '') : event_type);

const COUNT = 50;
const BLOCK_MS = 10_000;
const LONGEST_RETRY_S = 300;
/** A third of the bus's minute: two of three words may be lost. */
const WORD_EVERY_MS = 20_000;

/**
 * Reads a family in a consumer group, one entry after the other, and settles each: ack, retry later, or dead letter (house 13). While it
 * works through what it read, it says so to the bus, so that nobody else is given the same (H-21).
 */
export class EventConsumer implements AsyncDisposable {
  readonly #options: ConsumerOptions;
  readonly #group: string;
  readonly #stopping = new AbortController();
  readonly #running: Promise<void>;
  /** Read and not settled yet, in their order. */
  readonly #held = new Map<string, StreamEntry>();

  constructor(options: ConsumerOptions) {
    this.#options = options;
    this.#group = options.delivery === 'fleet' ? options.name : `${options.name}.${options.instance}`;
    this.#running = this.#run();
  }

  async #run(): Promise<void> {
    const { bus, log, family, instance, delivery, name } = this.#options;
    const { signal } = this.#stopping;
    using _word = this.#options.clock.every(WORD_EVERY_MS, () => this.#stillAtWork());
    for (let failures = 0; !signal.aborted; ) {
      try {
        const { entries, gaps = [] } = await bus.consume(
          { env_id: '*', stream_family: family, consumer_group: this.#group, consumer: instance, count: COUNT, block_ms: BLOCK_MS, start: delivery === 'fleet' ? 'earliest' : 'latest' },
          signal,
        );
        failures = 0;
        if (gaps.length > 0) log.error({ alert: 'events_missed', consumer: name, gaps }, 'events were cut before this consumer had read them');
        for (const entry of entries) this.#held.set(keyOf(entry), entry);
        for (const entry of entries) {
          if (signal.aborted) break;
          // Another one has it by now.
          if (!this.#held.has(keyOf(entry))) continue;
          await this.#settle(entry).finally(() => this.#held.delete(keyOf(entry)));
        }
      } catch (error) {
        this.#held.clear();
        if (signal.aborted) break;
        if (failures === 3) log.warn({ consumer: name, err: error }, 'events cannot be consumed; trying on');
        await delay(backoff(failures++, { baseMs: 200, capMs: 5_000, jitter: true }), undefined, { signal, ref: false }).catch(() => undefined);
      }
    }
    if (delivery === 'process') await bus.close({ stream_family: family, consumer_group: this.#group }).catch(() => undefined);
  }

  async #settle(entry: StreamEntry): Promise<void> {
    const { bus, event, log, name } = this.#options;
    const where = { env_id: entry.env_id, stream_family: entry.stream_family, consumer_group: this.#group, consumer: this.#options.instance, message_ids: [entry.message_id] };
    if (event !== '*' && originalType(entry) !== event) return void (await bus.ack(where));
    try {
      await this.#handle(entry);
    } catch (error) {
      if (!(error instanceof AlreadyHandled)) {
        const never = isProblem(error) && error.retry === 'never';
        const reason = isProblem(error) ? `${error.code}: ${error.message}` : error instanceof Error ? error.message : String(error);
        log.warn({ consumer: name, event_type: entry.event_type, message_id: entry.message_id, err: error }, never ? 'event refused for good' : 'event will be retried');
        const attempt = entry.delivery_count ?? 1;
        return this.#told(
          entry,
          await bus.nack({
            ...where,
            retry_after_secs: Math.round(backoff(attempt, { baseMs: 1_000, capMs: LONGEST_RETRY_S * 1_000 }) / 1_000),
            reason: reason.slice(0, 500),
            ...(never ? { dead_letter: true } : {}),
          }),
        );
      }
    }
    this.#told(entry, await bus.ack(where));
  }

  /** A lost lease does no harm where the effect is marked; that it happened is worth a line. */
  #told({ event_type, message_id }: StreamEntry, { lost = [] }: Lost): void {
    if (lost.length > 0) this.#options.log.warn({ consumer: this.#options.name, event_type, message_id }, 'another consumer had taken the event meanwhile');
  }

  async #stillAtWork(): Promise<void> {
    const { bus, log, name, instance } = this.#options;
    for (const entries of Map.groupBy(this.#held.values(), ({ env_id, stream_family }) => `${env_id}\n${stream_family}`).values()) {
      const [{ env_id, stream_family }] = entries as [StreamEntry, ...StreamEntry[]];
      const message_ids = entries.map(({ message_id }) => message_id);
      try {
        const { lost = [] } = await bus.extend({ env_id, stream_family, consumer_group: this.#group, consumer: instance, message_ids });
        for (const message_id of lost) this.#held.delete(keyOf({ env_id, stream_family, message_id }));
      } catch (error) {
        log.debug({ consumer: name, err: error }, 'the bus did not hear that events are still worked on');
      }
    }
  }

  async #handle(entry: StreamEntry): Promise<void> {
    const { service, name, handle, mark, delivery } = this.#options;
    const consumption = { consumer: name, key: entry.idempotency_key, marked: false };
    const run = () => inScope({ correlationId: entry.correlation_id, service, envId: entry.env_id }, () => handle(entry));
    if (delivery === 'process') return run();
    await consuming(consumption, run);
    // A handler without a transaction has no effect to commit with; its mark alone still stops a second delivery.
    if (!consumption.marked) await mark?.(consumption.consumer, consumption.key);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#stopping.abort();
    await this.#running;
  }
}
