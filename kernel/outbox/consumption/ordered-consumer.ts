import { backoff } from '../../base/backoff.ts';
import { pause } from '../../base/clock.ts';
import type { ConsumerOptions } from './consumer-options.ts';
import type { StreamEntry } from './consumer-bus.ts';
import { type Handled, handleOnce, typesOf, wants } from './handling.ts';
import { Leaseholder } from './leaseholder.ts';

/** The right of one process of the fleet to consume. */
export interface Lead extends AsyncDisposable {
  /** Renews it, and says whether it is still there. */
  held(): Promise<boolean>;
}
export interface OrderedConsumerOptions extends ConsumerOptions {
  /** Member of the payload by which order counts. */
  readonly ordered: string;
  /** Takes the lead, or answers nothing while another process has it. */
  readonly lead: () => Promise<Lead | undefined>;
}

const COUNT = 50;
const BLOCK_MS = 10_000;
const STANDBY_MS = 2_000;
const RENEW_MS = 10_000;
const MOST_HELD = 500;
/** As often as the bus itself would try. */
const ATTEMPTS = 5;
/** All processes read under one name: who takes the lead goes on with what the one before had in its hands. */
const CONSUMER = 'ordered';

/**
 * Handles events of one key in their order: one process reads, each key has a line of its own, and a failed event is tried again in its
 * place while other keys go on. Life: standby → leading → (standby → leading)* → stopped.
 */
export class OrderedConsumer implements AsyncDisposable {
  readonly #options: OrderedConsumerOptions;
  readonly #stopping = new AbortController();
  #turn: Promise<unknown> = Promise.resolve();
  readonly #running: Promise<void>;

  constructor(options: OrderedConsumerOptions) {
    this.#options = options;
    this.#running = this.#run();
  }

  async #run(): Promise<void> {
    const { clock, log, name, lead, reconnectMs } = this.#options;
    const { signal } = this.#stopping;
    for (let failures = 0; !signal.aborted; ) {
      try {
        await using taken = await lead();
        if (taken) await this.#lead(taken);
        failures = 0;
        if (!taken) await pause(clock, STANDBY_MS, signal);
      } catch (error) {
        if (signal.aborted) break;
        if (failures === 3) log.warn({ consumer: name, err: error }, 'events cannot be consumed; trying on');
        const wait = backoff(failures++, { baseMs: 200, capMs: 5_000, jitter: true });
        await pause(clock, reconnectMs ?? wait, signal);
      }
    }
  }

  async #lead(taken: Lead): Promise<void> {
    const { bus, log, clock, family, event, name } = this.#options;
    const over = new AbortController();
    const signal = AbortSignal.any([this.#stopping.signal, over.signal]);
    using leases = new Leaseholder({ bus, log, clock, name, group: name, consumer: CONSUMER });
    using _renewal = clock.every(RENEW_MS, async () => {
      if (!(await taken.held().catch(() => false))) over.abort();
    });
    const lines = new Map<string, Promise<void>>();
    let fault: unknown;
    try {
      for (let pending = true; !signal.aborted && (await taken.held()); pending = false) {
        if (leases.size >= MOST_HELD) await Promise.race(lines.values());
        const { entries, gaps = [] } = await bus.consume(
          {
            env_id: '*',
            stream_family: family,
            consumer_group: name,
            consumer: CONSUMER,
            count: COUNT,
            block_ms: BLOCK_MS,
            start: 'earliest',
            ...typesOf(event),
            ...(pending ? { pending } : {}),
          },
          signal,
        );
        if (gaps.length > 0)
          log.error({ alert: 'events_missed', consumer: name, gaps }, 'events were cut before this consumer had read them');
        leases.hold(entries);
        for (const entry of entries) {
          const key = this.#keyOf(entry);
          // A line that breaks ends the lead: the next one begins again with what is left of it.
          const line = (lines.get(key) ?? Promise.resolve())
            .then(() => this.#settle(entry, leases, signal))
            .catch(error => {
              fault ??= error;
              over.abort();
            })
            .finally(() => lines.get(key) === line && lines.delete(key));
          lines.set(key, line);
        }
      }
    } catch (error) {
      if (!signal.aborted) throw error;
    } finally {
      over.abort();
      await Promise.all(lines.values());
    }
    if (fault !== undefined) throw fault;
  }

  /** Tries in its place until it is handled or given up; those behind it wait. */
  async #settle(entry: StreamEntry, leases: Leaseholder, signal: AbortSignal): Promise<void> {
    const { clock, log, name } = this.#options;
    const earlier: { at: string; reason: string }[] = [];
    while (!signal.aborted && leases.holds(entry)) {
      const handled = await this.#inTurn(entry, signal);
      if (!handled) return;
      if (handled.ok) return leases.ack(entry);
      const { never, reason, error } = handled;
      const last = never || earlier.length + 1 >= ATTEMPTS;
      log.warn(
        { consumer: name, event_type: entry.event_type, message_id: entry.message_id, err: error },
        last ? 'event refused for good' : 'event will be retried in its place',
      );
      if (last)
        return leases.nack(entry, {
          retry_after_secs: 0,
          reason: (never ? reason : `retries_exhausted: ${reason}`).slice(0, 500),
          dead_letter: true,
          earlier,
        });
      earlier.push({ at: clock.now().toISOString(), reason });
      await pause(clock, backoff(earlier.length, { baseMs: 1_000, capMs: 60_000 }), signal);
    }
  }

  /** One handler at a time, as everywhere; lines only wait beside each other. */
  #inTurn(entry: StreamEntry, signal: AbortSignal): Promise<Handled | undefined> {
    if (!wants(this.#options, entry)) return Promise.resolve({ ok: true });
    const run = this.#turn.then(() => (signal.aborted ? undefined : handleOnce(this.#options, entry)));
    this.#turn = run.catch(() => undefined);
    return run;
  }

  #keyOf({ env_id, payload }: StreamEntry): string {
    return `${env_id}\n${JSON.stringify((payload as Readonly<Record<string, unknown>>)[this.#options.ordered]) ?? ''}`;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#stopping.abort();
    await this.#running;
  }
}
