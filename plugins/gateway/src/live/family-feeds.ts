import type { Ctx } from '../context.ts';
import type { LiveHub } from './live-hub.ts';

const FAMILY = /^[a-zA-Z0-9._-]{1,64}$/;
/** Never relayed (G-BFF-08), or not a family at all. */
const CLOSED = ['policy', 'audit', 'bus', 'dlq', 'delayed', 'jti'];

/** Hears the stream families that verticals bring while the gateway runs; those of the platform are declared in the contract. */
export class FamilyFeeds implements AsyncDisposable {
  readonly #ctx: Ctx;
  readonly #hub: LiveHub;
  readonly #declared: ReadonlySet<string>;
  readonly #feeds = new Map<string, AsyncDisposable>();
  #following: Promise<void> = Promise.resolve();
  #disposed = false;

  constructor(ctx: Ctx, { hub, declared }: { hub: LiveHub; declared: readonly string[] }) {
    this.#ctx = ctx;
    this.#hub = hub;
    this.#declared = new Set([...declared, ...CLOSED]);
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
    await Promise.all([...this.#feeds.values()].map(feed => feed[Symbol.asyncDispose]()));
  }

  async #follow(): Promise<void> {
    const wanted = await this.#wanted();
    if (this.#disposed) return;
    for (const family of wanted) {
      if (this.#feeds.has(family)) continue;
      this.#feeds.set(
        family,
        this.#ctx.events.subscribe({ family }, ({ id, event, envId, payload }) => this.#hub.publish({ id, event, envId, payload })),
      );
    }
    for (const [family, feed] of this.#feeds) {
      if (wanted.has(family)) continue;
      this.#feeds.delete(family);
      await feed[Symbol.asyncDispose]();
    }
  }

  async #wanted(): Promise<Set<string>> {
    const families = new Set<string>();
    for (let cursor: string | null | undefined; cursor !== null; ) {
      const { items, next_cursor: next } = await this.#ctx.services.registry.listVerticals({
        query: { limit: 200, ...(cursor ? { cursor } : {}) },
      });
      for (const { stream_families: some } of items)
        for (const family of some) if (FAMILY.test(family) && !this.#declared.has(family)) families.add(family);
      cursor = next;
    }
    return families;
  }
}
