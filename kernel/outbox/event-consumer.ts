import { setTimeout as delay } from 'node:timers/promises';
import { isProblem, type Logger } from '@platform/sdk';
import { backoff } from '../base/backoff.ts';
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

/** The bus as a consumer needs it: any environment at once, one family, one group. */
export interface ConsumerBus {
  consume(
    request: { env_id: '*'; stream_family: string; consumer_group: string; consumer: string; count: number; block_ms: number; start: 'earliest' | 'latest' },
    signal: AbortSignal,
  ): Promise<readonly StreamEntry[]>;
  ack(request: { env_id: string; stream_family: string; consumer_group: string; message_ids: readonly string[] }): Promise<void>;
  nack(request: { env_id: string; stream_family: string; consumer_group: string; message_ids: readonly string[]; retry_after_secs: number; reason: string; dead_letter?: boolean }): Promise<void>;
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
  readonly handle: (entry: StreamEntry) => Promise<void>;
  /** Writes the mark of a handler that opened no transaction; false when it was there already. */
  readonly mark?: (consumer: string, key: string) => Promise<boolean>;
}

/** A replayed dead letter is the same event once more (C3, C18). */
const originalType = ({ event_type, replayed_from_dlq }: StreamEntry) => (replayed_from_dlq ? event_type.replace(/\.replayed$/, '') : event_type);

const COUNT = 50;
const BLOCK_MS = 10_000;
const LONGEST_RETRY_S = 300;

/** Reads a family in a consumer group, one entry after the other, and settles each: ack, retry later, or dead letter (house 13). */
export class EventConsumer implements AsyncDisposable {
  readonly #options: ConsumerOptions;
  readonly #group: string;
  readonly #stopping = new AbortController();
  readonly #running: Promise<void>;

  constructor(options: ConsumerOptions) {
    this.#options = options;
    this.#group = options.delivery === 'fleet' ? options.name : `${options.name}.${options.instance}`;
    this.#running = this.#run();
  }

  async #run(): Promise<void> {
    const { bus, log, family, instance, delivery, name } = this.#options;
    const { signal } = this.#stopping;
    for (let failures = 0; !signal.aborted; ) {
      try {
        const entries = await bus.consume(
          { env_id: '*', stream_family: family, consumer_group: this.#group, consumer: instance, count: COUNT, block_ms: BLOCK_MS, start: delivery === 'fleet' ? 'earliest' : 'latest' },
          signal,
        );
        failures = 0;
        for (const entry of entries) {
          if (signal.aborted) break;
          await this.#settle(entry);
        }
      } catch (error) {
        if (signal.aborted) break;
        if (failures === 3) log.warn({ consumer: name, err: error }, 'events cannot be consumed; trying on');
        await delay(backoff(failures++, { baseMs: 200, capMs: 5_000, jitter: true }), undefined, { signal, ref: false }).catch(() => undefined);
      }
    }
    if (delivery === 'process') await bus.close({ stream_family: family, consumer_group: this.#group }).catch(() => undefined);
  }

  async #settle(entry: StreamEntry): Promise<void> {
    const { bus, event, log, name } = this.#options;
    const where = { env_id: entry.env_id, stream_family: entry.stream_family, consumer_group: this.#group, message_ids: [entry.message_id] };
    if (event !== '*' && originalType(entry) !== event) return bus.ack(where);
    try {
      await this.#handle(entry);
    } catch (error) {
      if (!(error instanceof AlreadyHandled)) {
        const never = isProblem(error) && error.retry === 'never';
        const reason = isProblem(error) ? `${error.code}: ${error.message}` : error instanceof Error ? error.message : String(error);
        log.warn({ consumer: name, event_type: entry.event_type, message_id: entry.message_id, err: error }, never ? 'event refused for good' : 'event will be retried');
        const attempt = entry.delivery_count ?? 1;
        return bus.nack({
          ...where,
          retry_after_secs: Math.round(backoff(attempt, { baseMs: 1_000, capMs: LONGEST_RETRY_S * 1_000 }) / 1_000),
          reason: reason.slice(0, 500),
          ...(never ? { dead_letter: true } : {}),
        });
      }
    }
    return bus.ack(where);
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
