import type { LivingService } from '@platform/sdk';
import type { Ctx } from '../context.ts';
import type { LiveHub } from './live-hub.ts';

const FAMILY = /^[a-zA-Z0-9._-]{1,64}$/;
/** Never relayed (G-BFF-08), or not a family at all. */
const CLOSED = ['policy', 'audit', 'bus', 'dlq', 'delayed', 'jti'];

/** Hears the stream families of the platform's contracts from the beginning, and those that verticals bring while the gateway runs. */
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
    const brought = services.flatMap(({ life, stream_families: some }) => (life === 'gone' ? [] : some));
    const wanted = new Set([...this.#ofThePlatform(), ...brought].filter(this.#isOpen));
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

  #ofThePlatform(): string[] {
    return this.#ctx.catalog
      .manifests()
      .filter(({ vertical }) => vertical === 'platform')
      .flatMap(({ events, family: own }) => Object.values(events).map(({ family = own }) => family));
  }

  readonly #isOpen = (family: string): boolean => FAMILY.test(family) && !this.#declared.has(family);
}
