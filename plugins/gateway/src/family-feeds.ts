import { setTimeout as delay } from 'node:timers/promises';
import type { Ctx } from './context.ts';
import type { LiveHub } from './live-hub.ts';

interface Entry {
  readonly message_id: string;
  readonly event_type: string;
  readonly env_id: string;
  readonly payload: Readonly<Record<string, unknown>>;
  readonly idempotency_key: string;
}

const FAMILY = /^[a-zA-Z0-9._-]{1,64}$/;
/** Never relayed (G-BFF-08), or not a family at all. */
const CLOSED = ['policy', 'audit', 'bus', 'dlq', 'delayed', 'jti'];
const COUNT = 100;
const BLOCK_MS = 10_000;
const LONGEST_PAUSE_MS = 5_000;

/** Hears the stream families that verticals bring while the gateway runs; those of the platform are declared in the contract. Life of a feed: seen → unseen. */
export class FamilyFeeds implements AsyncDisposable {
  readonly #ctx: Ctx;
  readonly #hub: LiveHub;
  readonly #group: string;
  readonly #declared: ReadonlySet<string>;
  readonly #feeds = new Map<string, { stop: AbortController; running: Promise<void> }>();
  #following: Promise<void> = Promise.resolve();
  #disposed = false;

  constructor(ctx: Ctx, { hub, declared }: { hub: LiveHub; declared: readonly string[] }) {
    this.#ctx = ctx;
    this.#hub = hub;
    this.#declared = new Set([...declared, ...CLOSED]);
    this.#group = `live-${ctx.platform.newId()}`;
  }

  get families(): readonly string[] {
    return [...this.#feeds.keys()];
  }

  /** Makes the feeds those of the verticals that are registered now. */
  follow(): Promise<void> {
    this.#following = this.#following.catch(() => undefined).then(() => this.#follow());
    return this.#following;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#disposed = true;
    await this.#following.catch(() => undefined);
    const feeds = [...this.#feeds.values()];
    for (const { stop } of feeds) stop.abort();
    await Promise.all(feeds.map(({ running }) => running));
  }

  async #follow(): Promise<void> {
    const wanted = await this.#wanted();
    if (this.#disposed) return;
    for (const family of wanted) {
      if (this.#feeds.has(family)) continue;
      const stop = new AbortController();
      this.#feeds.set(family, { stop, running: this.#run(family, stop.signal) });
    }
    for (const [family, { stop }] of this.#feeds) {
      if (wanted.has(family)) continue;
      this.#feeds.delete(family);
      stop.abort();
    }
  }

  async #wanted(): Promise<Set<string>> {
    const families = new Set<string>();
    for (let cursor: string | null | undefined; cursor !== null; ) {
      const { items, next_cursor: next } = await this.#ctx.services.registry.listVerticals({ query: { limit: 200, ...(cursor ? { cursor } : {}) } });
      for (const { stream_families: some } of items) for (const family of some) if (FAMILY.test(family) && !this.#declared.has(family)) families.add(family);
      cursor = next;
    }
    return families;
  }

  async #run(family: string, signal: AbortSignal): Promise<void> {
    const where = { stream_family: family, consumer_group: this.#group };
    for (let failures = 0; !signal.aborted; ) {
      try {
        const { entries } = (await this.#call('/v1/consume', { ...where, env_id: '*', count: COUNT, block_ms: BLOCK_MS, start: 'latest' }, signal)) as { entries: readonly Entry[] };
        failures = 0;
        for (const { event_type: event, env_id: envId, payload, idempotency_key: id } of entries) await this.#hub.publish({ id, event, envId, payload });
        for (const [envId, ids] of Map.groupBy(entries, ({ env_id: env }) => env)) await this.#call('/v1/ack', { ...where, env_id: envId, message_ids: ids.map(({ message_id: id }) => id) }, signal);
      } catch (error) {
        if (signal.aborted) break;
        if (failures === 3) this.#ctx.log.warn({ stream_family: family, err: error }, 'a family cannot be heard; trying on');
        await delay(Math.min(LONGEST_PAUSE_MS, 200 * 2 ** failures++), undefined, { signal, ref: false }).catch(() => undefined);
      }
    }
    await this.#call('/v1/consume/close', where, AbortSignal.timeout(2_000)).catch(() => undefined);
  }

  async #call(path: string, body: object, signal: AbortSignal): Promise<unknown> {
    const response = await this.#ctx.backends.fetch('bus', path, {
      method: 'POST',
      headers: { 'content-type': 'application/json', accept: 'application/json' },
      body: JSON.stringify(body),
      signal,
      timeoutMs: 2 * BLOCK_MS,
      longPoll: path === '/v1/consume',
    });
    const text = await response.text();
    if (!response.ok) throw new Error(`bus answered ${response.status} to ${path}: ${text.slice(0, 200)}`);
    return text === '' ? {} : JSON.parse(text);
  }
}
