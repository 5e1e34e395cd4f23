import type { LivingService } from '@platform/sdk';
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
  #disposed = false;

  constructor(ctx: Ctx, { hub, declared }: { hub: LiveHub; declared: readonly string[] }) {
    this.#ctx = ctx;
    this.#hub = hub;
    this.#declared = new Set([...declared, ...CLOSED]);
  }

  /** Makes the feeds those of the services that are not gone. */
  async follow(services: readonly LivingService[]): Promise<void> {
    if (this.#disposed) return;
    const wanted = new Set(services.flatMap(({ life, stream_families: some }) => (life === 'gone' ? [] : some)).filter(this.#isOpen));
    for (const family of wanted) {
      if (this.#feeds.has(family)) continue;
      this.#feeds.set(
        family,
        this.#ctx.events.subscribe({ family, missed: () => this.#hub.missed() }, ({ id, event, envId, payload }) =>
          this.#hub.publish({ id, event, envId, payload }),
        ),
      );
    }
    for (const [family, feed] of this.#feeds) {
      if (wanted.has(family)) continue;
      this.#feeds.delete(family);
      await feed[Symbol.asyncDispose]();
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#disposed = true;
    await Promise.all([...this.#feeds.values()].map(feed => feed[Symbol.asyncDispose]()));
  }

  readonly #isOpen = (family: string): boolean => FAMILY.test(family) && !this.#declared.has(family);
}
