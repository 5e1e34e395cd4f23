import { backoff } from '../../base/backoff.ts';
import { pause } from '../../base/clock.ts';
import { handleOnce, typesOf, wants } from './handling.ts';
import { Leaseholder } from './leaseholder.ts';
import type { StreamEntry } from './consumer-bus.ts';
import type { ConsumerOptions } from './consumer-options.ts';

const COUNT = 50;
const BLOCK_MS = 10_000;
const LONGEST_RETRY_S = 300;

/**
 * Reads a family in a consumer group, one entry after the other, and settles each: ack, retry later, or dead letter (house 13). While it
 * works through what it read, it says so to the bus, so that nobody else is given the same (H-21).
 */
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
    const { bus, log, clock, family, event, instance, delivery, name, reconnectMs, missed } = this.#options;
    const { signal } = this.#stopping;
    using leases = new Leaseholder({ bus, log, clock, name, group: this.#group, consumer: instance });
    let hears = false;
    for (let failures = 0; !signal.aborted; ) {
      try {
        const { entries, gaps = [] } = await bus.consume(
          {
            env_id: '*',
            stream_family: family,
            consumer_group: this.#group,
            consumer: instance,
            count: COUNT,
            // The first answer says that the group is there.
            block_ms: hears || !missed ? BLOCK_MS : 0,
            start: delivery === 'fleet' ? 'earliest' : 'latest',
            ...typesOf(event),
          },
          signal,
        );
        failures = 0;
        if (gaps.length > 0)
          log.error({ alert: 'events_missed', consumer: name, gaps }, 'events were cut before this consumer had read them');
        if (gaps.length > 0 || (!hears && delivery === 'process')) missed?.();
        hears = true;
        leases.hold(entries);
        await this.#handle(entries, leases);
      } catch (error) {
        leases.drop();
        if (signal.aborted) break;
        if (failures === 3) log.warn({ consumer: name, err: error }, 'events cannot be consumed; trying on');
        const wait = backoff(failures++, { baseMs: 200, capMs: 5_000, jitter: true });
        await pause(clock, reconnectMs ?? wait, signal);
      }
    }
    if (delivery === 'process') await bus.close({ stream_family: family, consumer_group: this.#group }).catch(() => undefined);
  }

  /**
   * Lanes beside each other, the entries of a lane one after another. Acknowledgements travel together; all have arrived when this ends.
   */
  async #handle(entries: readonly StreamEntry[], leases: Leaseholder): Promise<void> {
    const { concurrency = 1 } = this.#options;
    const lanes = concurrency === 1 ? [entries] : [...Map.groupBy(entries, ({ env_id }) => env_id).values()];
    const told: Promise<void>[] = [];
    const worker = async () => {
      for (let lane = lanes.shift(); lane; lane = lanes.shift()) {
        for (const entry of lane) {
          if (this.#stopping.signal.aborted) return;
          // Another one has it by now.
          if (leases.holds(entry)) await this.#settle(entry, leases, told);
        }
      }
    };
    await Promise.all(Array.from({ length: Math.min(concurrency, lanes.length) }, worker));
    await Promise.all(told);
  }

  async #settle(entry: StreamEntry, leases: Leaseholder, told: Promise<void>[]): Promise<void> {
    const { log, name } = this.#options;
    const handled = wants(this.#options, entry) ? await handleOnce(this.#options, entry) : { ok: true as const };
    if (handled.ok) {
      const acknowledged = leases.ack(entry);
      // It is looked at with the others, at the end.
      acknowledged.catch(() => undefined);
      return void told.push(acknowledged);
    }
    const { never, reason, error } = handled;
    log.warn(
      { consumer: name, event_type: entry.event_type, message_id: entry.message_id, err: error },
      never ? 'event refused for good' : 'event will be retried',
    );
    const waitMs = backoff(entry.delivery_count ?? 1, { baseMs: 1_000, capMs: LONGEST_RETRY_S * 1_000 });
    return leases.nack(entry, { retry_after_secs: Math.round(waitMs / 1_000), reason, ...(never ? { dead_letter: true } : {}) });
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#stopping.abort();
    await this.#running;
  }
}
