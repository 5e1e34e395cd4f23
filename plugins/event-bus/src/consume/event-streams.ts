import type { RequestOf, StreamItem } from '@platform/sdk';
import type { eventBus } from '../../contract/index.ts';
import { environmentOf, familyOf, groupOf } from '../context.ts';
import { type ConsumerParts, type Consumers, visibility } from './consumers.ts';
import { entryOf, type ReadEntry } from '../stream/entry.ts';
import type { StreamRef } from '../stream/names.ts';

const SWEEP_MS = 5_000;
/** A read waits for ten seconds at most. */
const TICKS_PER_BLOCK = 2;
const READ = 10;
const CLAIM = 20;
const DEEP = 100;

/** What one open stream remembers. */
interface Open {
  readonly ref: StreamRef;
  readonly group: string;
  readonly consumer: string;
  readonly sees: (entry: ReadEntry) => boolean;
  deep: boolean;
}

/**
 * Server-sent events through a consumer group. Deliveries are acknowledged by `POST /v1/ack`; a closed stream leaves its entries pending.
 */
export class EventStreams {
  readonly #parts: ConsumerParts;
  readonly #consumers: Consumers;

  constructor(parts: ConsumerParts, consumers: Consumers) {
    this.#parts = parts;
    this.#consumers = consumers;
  }

  /** Refuses before the first byte; the events follow. */
  open(request: RequestOf<typeof eventBus, 'consumeSse'>): AsyncIterable<StreamItem> {
    const { ctx } = this.#parts;
    const { query, caller, signal } = request;
    const ref = { family: familyOf(ctx, query.stream_family), env: environmentOf(ctx, request, query.env_id) };
    const group = groupOf(caller, query.consumer_group);
    return this.#events(
      { ref, group, consumer: `sse-${ctx.platform.newId()}`, sees: visibility(caller, group, { everywhere: false }), deep: false },
      signal,
    );
  }

  /**
   * Reads when something was appended, and without being told every ten seconds; every five it looks for what others left behind. All
   * in one turn: a slow client is not read for.
   */
  async *#events(open: Open, signal: AbortSignal): AsyncGenerator<StreamItem> {
    const { ctx, reader, wake, counters } = this.#parts;
    const { ref, group, consumer } = open;
    counters.sse_clients += 1;
    using waiter = wake.waiter(ref.family, ref.env, signal);
    // Ticks that have passed since the last sweep and the last read; the first turn does both.
    const ticks = { sweep: 1, read: TICKS_PER_BLOCK };
    using _tick = ctx.every(SWEEP_MS, () => {
      ticks.sweep += 1;
      ticks.read += 1;
      waiter.rouse();
    });
    try {
      while (!signal.aborted && !waiter.closed) {
        const reads = waiter.takeAppended() || ticks.read >= TICKS_PER_BLOCK;
        // The read makes the group, before anything can be claimed in it.
        const fresh = reads ? await this.#consumers.readNew(ref, group, consumer, READ, 'latest') : [];
        if (reads) ticks.read = 0;
        const swept = ticks.sweep > 0 ? await this.#sweep(open) : undefined;
        if (swept) {
          ticks.sweep = 0;
          for (const gap of swept.gaps) yield { event: 'gap', data: gap };
          await swept.told();
        }
        for (const entry of await this.#visible(open, [...(swept?.entries ?? []), ...fresh])) {
          counters.consumed += 1;
          yield { id: entry.id, event: entry.envelope.event_type, data: entryOf(entry) };
        }
        // There may be more than one read takes.
        if (fresh.length > 0) waiter.wake();
        await waiter.wait();
      }
    } finally {
      await reader.leave(ref, group, consumer).catch(error => ctx.log.debug({ err: error, consumer }, 'a consumer stays in its group'));
      counters.sse_clients -= 1;
    }
  }

  async #sweep(open: Open) {
    const { ctx, reader, gaps } = this.#parts;
    const { ref, group, consumer } = open;
    const [entries, pending, missed] = await Promise.all([
      reader.abandoned([ref], group, consumer, CLAIM),
      reader.pendingOf(ref, group),
      gaps.of([ref], group),
    ]);
    // Once when it becomes deep, not with every look.
    if (pending > DEEP && !open.deep)
      ctx.log.warn({ env_id: ref.env, stream_family: ref.family, group, pending }, 'event stream: many entries are not acknowledged');
    open.deep = pending > DEEP;
    return { entries, ...missed };
  }

  /** What is not for this group is settled unread. */
  async #visible({ sees, group }: Open, entries: readonly ReadEntry[]): Promise<ReadEntry[]> {
    await this.#parts.reader.acknowledge(
      entries.filter(entry => !sees(entry)),
      group,
    );
    return entries.filter(sees);
  }
}
