import { type Delivery, isProblem } from '@platform/sdk';
import type { Ctx } from '../context.ts';

/** What this service records itself: such a sum is told again like any other, and is not taken over again. */
const OWN = 'usage.';
const METRIC_LENGTH = 100;
const KEPT_MS = 8 * 86_400_000;

interface Aggregate {
  readonly property_id: string;
  readonly window: { readonly from: string };
  readonly metrics: Readonly<Record<string, number>>;
}
interface Taken {
  readonly taken: number;
  readonly under_way: number | null;
  readonly key: string | null;
}
interface Place {
  readonly property_id: string;
  readonly minute: string;
  readonly metric: string;
}

/**
 * What is measured of listings, taken over as their usage (G-APP-08, APP-018 to APP-024).
 *
 * An event tells the sums of a minute so far, all of them, whenever one of them has moved; what is recorded here moves one too. So only
 * the difference to what was taken over before is recorded: an event that brings nothing new ends the circle, and a late measurement
 * counts once. That holds for events in their order alone: the subscription keeps those of a property in it.
 * The difference is written down with its key before it is sent, so that a crash between the two sends the same again.
 */
export class Usage {
  readonly #ctx: Pick<Ctx, 'db' | 'services' | 'catalog' | 'log' | 'clock'>;

  constructor(ctx: Pick<Ctx, 'db' | 'services' | 'catalog' | 'log' | 'clock'>) {
    this.#ctx = ctx;
  }

  /** Returning acknowledges the event; what is thrown brings it again. */
  async take({ id, payload }: Delivery<Aggregate>): Promise<void> {
    // Nobody gives a token for a service that this installation leaves out (APP-024).
    if (!this.#ctx.catalog.manifests().some(manifest => manifest.id === 'stat')) return;
    const { property_id, window } = payload;
    const [listing] = await this.#ctx.db.sql<
      { listing_id: string }[]
    >`select listing_id from listings where statistics_property_id::text = ${property_id}`;
    if (!listing) return this.#ctx.log.debug({ property_id }, 'a sum that is of no listing is nobody’s usage');
    for (const [name, value] of Object.entries(payload.metrics)) {
      const metric = `${OWN}${name}`;
      if (name.startsWith(OWN) || metric.length > METRIC_LENGTH) continue;
      await this.#settle({ property_id, minute: window.from, metric }, value, {
        key: `${id}:${name}`.slice(0, 200),
        listingId: listing.listing_id,
      });
    }
  }

  /** Marks of minutes for which the statistics service takes nothing any more. */
  async forget(): Promise<void> {
    await this.#ctx.db.sql`delete from usage_taken where touched_at < ${new Date(this.#ctx.clock.now().getTime() - KEPT_MS)}`;
  }

  async #settle(place: Place, value: number, { key, listingId }: { key: string; listingId: string }): Promise<void> {
    const before = await this.#read(place);
    // A difference that an earlier event left on its way goes first, under its own key.
    if (before.under_way !== null && before.key !== null && before.key !== key)
      await this.#send(place, before.under_way, before.key, listingId);
    const { taken } = await this.#read(place);
    const difference = before.key === key && before.under_way !== null ? before.under_way : value - taken;
    if (difference === 0) return;
    const { property_id, minute, metric } = place;
    const touched_at = this.#ctx.clock.now();
    // Beside any transaction of the event: this mark stands even where the event has to come again.
    await this.#ctx.db.sql`
      insert into usage_taken ${this.#ctx.db.sql.row({ property_id, minute, metric, under_way: difference, key, touched_at })}
      on conflict (property_id, minute, metric) do update set under_way = excluded.under_way, key = excluded.key,
        touched_at = excluded.touched_at`;
    await this.#send(place, difference, key, listingId);
  }

  async #send({ property_id, minute, metric }: Place, value: number, key: string, listingId: string): Promise<void> {
    try {
      await this.#ctx.services.statistics.measure({
        body: { property_id, metric, value, at: minute, dimensions: { listing: listingId }, idempotency_key: key },
      });
    } catch (error) {
      // What the statistics service refuses for good is refused the next time too (G-APP-08).
      if (!isProblem(error) || error.status >= 500 || error.retry === 'later') throw error;
      this.#ctx.log.warn({ property_id, metric, code: error.code }, 'usage that cannot be recorded is left out');
    }
    await this.#ctx.db.sql`
      update usage_taken set taken = taken + under_way, under_way = null, key = null
      where property_id = ${property_id} and minute = ${minute} and metric = ${metric} and key = ${key}`;
  }

  async #read({ property_id, minute, metric }: Place): Promise<Taken> {
    const [row] = await this.#ctx.db.sql<
      Taken[]
    >`select taken, under_way, key from usage_taken where property_id = ${property_id} and minute = ${minute} and metric = ${metric}`;
    return row ?? { taken: 0, under_way: null, key: null };
  }
}
