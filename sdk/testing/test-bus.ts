import { newId } from '@platform/kernel/base/ids';
import type { Manifest } from '@platform/kernel/base/manifest';
import type { StreamEntry } from '@platform/kernel/outbox/consumption/consumer-bus';

/** Long beside what an event takes, short beside what a test may. */
const DEADLINE_MS = 20_000;

export interface SeenEvent {
  readonly event_type: string;
  readonly env_id: string;
  readonly payload: Readonly<Record<string, unknown>>;
  readonly correlation_id: string;
  readonly publisher_subject: string;
  readonly idempotency_key?: string;
}
interface Asked {
  readonly body: unknown;
  readonly signal: AbortSignal;
}
interface Wanted {
  readonly consumer_group: string;
  readonly stream_family: string;
  readonly types?: readonly string[];
  readonly block_ms?: number;
}
interface Given {
  readonly entries: readonly StreamEntry[];
  readonly gaps?: readonly object[];
}
interface Reader {
  readonly wanted: Wanted;
  readonly give: (given: Given) => void;
}
/** How an event is delivered: the same `id` twice is one event delivered twice. */
export interface DeliveryOptions {
  readonly id?: string;
  /** The stream it comes on: subscriptions that were made while the service runs hear it too, and those of other families do not. */
  readonly family?: string;
}
/** One event on its way to one subscription. */
interface Delivery {
  readonly entry: StreamEntry;
  readonly done: () => void;
  readonly failed: (reason: Error) => void;
}

/** The bus as a service under test sees it: what it produces is kept, and it consumes what a test delivers. */
export class TestBus {
  readonly seen: SeenEvent[] = [];
  /** While set, producing fails as an outage makes it, and so does asking for events. */
  away = false;
  readonly #manifest: Manifest;
  readonly #emitted: (name: string) => void;
  readonly #waiting = new Set<() => void>();
  /** By group: what it is to be given, what it holds, and who waits for it. */
  readonly #queued = new Map<string, Delivery[]>();
  readonly #held = new Map<string, Delivery>();
  readonly #readers = new Map<string, Reader>();
  /** The family of every group that reads, by the group's whole name. */
  readonly #groups = new Map<string, string>();

  constructor(manifest: Manifest, emitted: (name: string) => void) {
    [this.#manifest, this.#emitted] = [manifest, emitted];
  }

  /** The operations of the bus that a process calls. */
  readonly operations = {
    produceBatch: ({ body }: Asked) => this.#produce((body as { events: SeenEvent[] }).events),
    consume: ({ body, signal }: Asked) => this.#consume(body as Wanted, signal),
    ack: ({ body }: Asked) => {
      const { message_ids } = body as { message_ids: string[] };
      for (const id of message_ids) this.#settle(id)?.done();
      return { acked: message_ids.length, lost: [] };
    },
    nack: ({ body }: Asked) => {
      const { message_ids, reason } = body as { message_ids: string[]; reason: string };
      for (const id of message_ids) this.#settle(id)?.failed(new Error(reason));
      return { queued: message_ids.length, lost: [] };
    },
    extend: () => ({ extended: 0, lease_secs: 60, lost: [] }),
    closeGroup: ({ body }: Asked) => ({ closed: Number(this.#groups.delete((body as Wanted).consumer_group)) }),
  };

  /** The families that are asked for at this moment, once for each reader. */
  get families(): string[] {
    return [...this.#groups.values()].sort();
  }

  /** Events of one name that were produced, waiting for at least `count` that fit. Fails after a while and says what came instead. */
  async events(name: string, count = 1, fits: (event: SeenEvent) => boolean = () => true): Promise<SeenEvent[]> {
    const late = Promise.withResolvers<never>();
    const timer = setTimeout(() => {
      const seen = Object.entries(Object.groupBy(this.seen, ({ event_type }) => event_type)).map(
        ([type, events]) => `${events?.length} × ${type}`,
      );
      late.reject(
        new Error(`${count} × ${name} did not reach the bus within ${DEADLINE_MS / 1_000} s; what did: ${seen.join(', ') || 'nothing'}`),
      );
    }, DEADLINE_MS);
    try {
      for (;;) {
        const found = this.seen.filter(event => event.event_type === name && fits(event));
        if (found.length >= count) return found;
        await Promise.race([new Promise<void>(resolve => this.#waiting.add(resolve)), late.promise]);
      }
    } finally {
      clearTimeout(timer);
    }
  }

  /**
   * Delivers one event to every subscription that wants it, and ends when all have handled it. A handler that throws fails this with its
   * words.
   */
  async deliver(event: string, envId: string, payload: object, { id = newId(), family: stream }: DeliveryOptions = {}): Promise<void> {
    const { consumes } = this.#manifest;
    const declared = Object.entries(consumes).filter(
      ([, wanted]) => (wanted.event === event || wanted.event === '*') && (stream ?? wanted.family) === wanted.family,
    );
    const made = [...this.#groups].map(([group, family]) => [nameOf(group), { family }] as const);
    const wanting = [...declared, ...made.filter(([name, { family }]) => family === stream && !(name in consumes))];
    if (wanting.length === 0) {
      const known = Object.values(consumes).map(wanted => wanted.event);
      throw new Error(`${this.#manifest.id} does not consume ${event}; it consumes ${known.join(', ') || 'nothing'}`);
    }
    await Promise.all(wanting.map(([group, { family }]) => this.#hand(group, { event, envId, family, payload, id })));
  }

  /** Tells every reader of a family that events were cut before it had read them. */
  lose(family: string): void {
    for (const { wanted, give } of [...this.#readers.values()])
      if (wanted.stream_family === family) give({ entries: [], gaps: [{ stream_family: family }] });
  }

  async #hand(
    group: string,
    { event, envId, family, payload, id }: { event: string; envId: string; family: string; payload: object; id: string },
  ): Promise<void> {
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    const entry = {
      message_id: newId(),
      event_type: event,
      env_id: envId,
      stream_family: family,
      payload: JSON.parse(JSON.stringify(payload)) as object,
      correlation_id: `test-${newId()}`,
      idempotency_key: id,
      delivery_count: 1,
    };
    const timer = setTimeout(
      () => reject(new Error(`the subscription ${group} did not handle ${event} within ${DEADLINE_MS / 1_000} s`)),
      DEADLINE_MS,
    );
    this.#queued.set(group, [...(this.#queued.get(group) ?? []), { entry, done: resolve, failed: reject }]);
    for (const reader of this.#readers.values()) this.#feed(reader);
    try {
      await promise;
    } finally {
      clearTimeout(timer);
    }
  }

  #produce(events: readonly SeenEvent[]): object {
    if (this.away) throw new Error('the bus is away');
    for (const event of events) {
      this.seen.push(event);
      this.#emitted(event.event_type);
    }
    for (const wake of this.#waiting) wake();
    this.#waiting.clear();
    return { results: events.map((_, index) => ({ message_id: `${Date.now()}-${index}`, stream: 'test' })) };
  }

  /** A consumer waits for what a test delivers, until it is stopped; one that does not want to wait is answered at once. */
  #consume(wanted: Wanted, signal: AbortSignal): Promise<Given> {
    return new Promise(resolve => {
      const key = newId();
      const end = (given: Given) => {
        this.#readers.delete(key);
        resolve(given);
      };
      if (signal.aborted) return end({ entries: [] });
      this.#groups.set(wanted.consumer_group, wanted.stream_family);
      if (this.away) throw new Error('the bus is away');
      signal.addEventListener('abort', () => end({ entries: [] }), { once: true });
      const reader = { wanted, give: end };
      this.#readers.set(key, reader);
      this.#feed(reader);
      if (wanted.block_ms === 0) end({ entries: [] });
    });
  }

  #feed({ wanted, give }: Reader): void {
    const group = nameOf(wanted.consumer_group);
    const queued = this.#queued.get(group) ?? [];
    if (queued.length === 0) return;
    this.#queued.delete(group);
    for (const delivery of queued) this.#held.set(delivery.entry.message_id, delivery);
    give({ entries: queued.map(({ entry }) => entry) });
  }

  #settle(messageId: string): Delivery | undefined {
    const delivery = this.#held.get(messageId);
    this.#held.delete(messageId);
    return delivery;
  }
}

/** A group of one process carries the process behind its name. */
const nameOf = (group: string): string => group.split('.')[0] ?? '';
