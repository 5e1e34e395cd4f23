import type { RequestOf, StreamItem } from '@platform/sdk';
import type { eventBus } from '../contract/index.ts';
import { environmentOf, familyOf, groupOf } from './context.ts';
import { type ConsumerParts, type Consumers, visibility } from './consumers.ts';
import { entryOf, type ReadEntry } from './entry.ts';
import { newId } from './ids.ts';
import type { StreamRef } from './names.ts';

const SWEEP_MS = 5_000;
const READ = 10;
const CLAIM = 20;
const DEEP = 100;

/** Server-sent events through a consumer group. Deliveries are acknowledged by `POST /v1/ack`; a closed stream leaves its entries pending. */
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
    return this.#events(ref, groupOf(caller, query.consumer_group), visibility(caller, groupOf(caller, query.consumer_group), false), signal);
  }

  async *#events(ref: StreamRef, group: string, sees: (entry: ReadEntry) => boolean, signal: AbortSignal): AsyncGenerator<StreamItem> {
    const { ctx, reader, wake, counters } = this.#parts;
    const consumer = `sse-${newId()}`;
    counters.sse_clients += 1;
    try {
      using waiter = wake.waiter(ref.family, ref.env);
      let sweptAt = Number.NEGATIVE_INFINITY;
      while (!signal.aborted && !waiter.closed) {
        const now = ctx.clock.now().getTime();
        const swept = now - sweptAt >= SWEEP_MS;
        const entries = await this.#consumers.readNew(ref, group, consumer, READ, 'latest');
        if (swept) {
          sweptAt = now;
          entries.unshift(...(await reader.abandoned([ref], group, consumer, CLAIM)));
          const pending = await reader.pendingOf(ref, group);
          if (pending > DEEP) ctx.log.warn({ env_id: ref.env, stream_family: ref.family, group, pending }, 'event stream: many entries are not acknowledged');
        }
        const visible = entries.filter(sees);
        await reader.acknowledge(
          entries.filter(entry => !visible.includes(entry)),
          group,
        );
        for (const entry of visible) {
          counters.consumed += 1;
          yield { id: entry.id, event: entry.envelope.event_type, data: entryOf(entry) };
        }
        if (entries.length === 0) await waiter.wait(SWEEP_MS, signal);
      }
    } finally {
      counters.sse_clients -= 1;
    }
  }
}
