import { FLEET_KEYS } from '@platform/sdk';
import type { Ctx } from '../context.ts';

const SEED_TRIES = 10;
const [SEED_EVERY_MS, POLL_MS] = [3_000, 30_000];
const [QUIET_MS, APART_MS, TICK_MS] = [1_000, 100, 50];

/**
 * Which services there are and how many of their instances take traffic. Seeded from the registry, ten times three seconds apart, then
 * asked every thirty (ING-007, ING-050); told of changes by `captain:changed`, which is waited out for a second of quiet (ING-046).
 * Connections live on whatever changes: new requests alone are chosen for anew.
 */
export class Topology {
  readonly #ctx: Ctx;
  readonly #onChange: () => void;
  #registered: readonly string[] = [];
  #services: Readonly<Record<string, { active: number; suspect: number }>> = {};
  #seededAt: number | undefined;
  #tries = 0;
  #reloads = 0;
  #changedAt: number | undefined;
  #reloadedAt = Number.NEGATIVE_INFINITY;
  #ticking: Disposable | undefined;

  constructor(ctx: Ctx, onChange: () => void = () => undefined) {
    this.#ctx = ctx;
    this.#onChange = onChange;
  }

  async start(): Promise<void> {
    const { own } = this.#ctx;
    own(await this.#ctx.kv.subscribe(FLEET_KEYS.changed, () => this.changed()));
    own({ [Symbol.dispose]: () => this.#ticking?.[Symbol.dispose]() });
    await Promise.all([this.#seed(), this.#reload()]);
    const seeding = this.#ctx.every(SEED_EVERY_MS, async () => {
      if (this.#seededAt !== undefined || this.#tries >= SEED_TRIES) return seeding[Symbol.dispose]();
      await this.#seed();
    });
    own(seeding);
    own(this.#ctx.every(POLL_MS, () => Promise.all([this.#seed(), this.#reload()]).then(() => undefined)));
  }

  get services(): Readonly<Record<string, { active: number; suspect: number }>> {
    return this.#services;
  }

  get figures(): Readonly<Record<string, number>> {
    return { topology_reloads_total: this.#reloads, seed_tries_total: this.#tries };
  }

  /** Seconds since the registry last answered; `null` where it never did. */
  ageSeconds(): number | null {
    return this.#seededAt === undefined ? null : Math.floor((this.#now() - this.#seededAt) / 1_000);
  }

  /** Something changed: when nothing more has for a second, what there is is read again. */
  changed(): void {
    this.#changedAt = this.#now();
    this.#ticking ??= this.#ctx.every(TICK_MS, async () => {
      const now = this.#now();
      if (this.#changedAt === undefined || now - this.#changedAt < QUIET_MS || now - this.#reloadedAt < APART_MS) return;
      this.#changedAt = undefined;
      this.#ticking?.[Symbol.dispose]();
      this.#ticking = undefined;
      await this.#reload();
    });
  }

  async #seed(): Promise<void> {
    this.#tries += 1;
    try {
      const { items } = await this.#ctx.services.registry.listVerticals({ query: { limit: 200 } });
      this.#registered = items.map(({ service }) => service);
      this.#seededAt = this.#now();
    } catch (error) {
      this.#ctx.log.debug({ tries: this.#tries, err: error }, 'the services of the registry could not be read; asked again');
    }
  }

  async #reload(): Promise<void> {
    this.#reloadedAt = this.#now();
    this.#reloads += 1;
    const ids = new Set([...(this.#ctx.catalog.manifests() as readonly { id: string }[]).map(({ id }) => id), ...this.#registered]);
    try {
      const read = [...ids].map(async id => {
        const addresses = await this.#ctx.backends.addresses(id);
        return [
          id,
          { active: addresses.length, suspect: addresses.filter(({ suspect_until }) => suspect_until !== undefined).length },
        ] as const;
      });
      this.#services = Object.fromEntries(await Promise.all(read));
      this.#onChange();
    } catch (error) {
      this.#ctx.log.debug({ err: error }, 'instances could not be read; those that are known stay');
    }
  }

  #now(): number {
    return this.#ctx.clock.now().getTime();
  }
}
