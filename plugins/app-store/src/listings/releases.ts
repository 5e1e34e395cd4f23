import { type Caller, SYSTEM } from '@platform/sdk';
import type { Listing } from '../../contract/schema/listing.ts';
import type { Ctx } from '../context.ts';
import { seenBy, selectListings, viewerOf } from './listing-row.ts';
import type { Listings } from './listings.ts';

const STABLE = 'stable';

/** Which release somebody asks for. */
export interface Wanted {
  readonly listing_id?: string;
  readonly app_slug?: string;
  readonly channel?: string;
  readonly version?: string;
}

/** Finds the release that an install means (APP-065 to APP-068): the one that was published last, or the one that is pinned. */
export class Releases {
  readonly #ctx: Ctx;
  readonly #listings: Listings;

  constructor(ctx: Ctx, listings: Listings) {
    [this.#ctx, this.#listings] = [ctx, listings];
  }

  async find(caller: Caller, envId: string, wanted: Wanted): Promise<Listing> {
    if (wanted.listing_id !== undefined) return this.#named(caller, envId, wanted.listing_id, wanted);
    const { app_slug, channel = STABLE, version } = wanted;
    if (app_slug === undefined) throw this.#ctx.problem('listing_ambiguous', { detail: 'Name the listing by listing_id, or by app_slug.' });
    const { sql } = this.#ctx.db;
    const seen = seenBy(sql, viewerOf(caller, envId));
    // The version is advisory (APP-035): it names a release, and orders none.
    const [found] = await selectListings(
      sql,
      version === undefined
        ? sql`where app_slug = ${app_slug} and channel = ${channel} and status = 'published' and ${seen}
          order by published_at desc, listing_id desc limit 1`
        : sql`where app_slug = ${app_slug} and channel = ${channel} and version = ${version} and status in ('published', 'deprecated')
          and ${seen}`,
    );
    if (!found)
      throw this.#ctx.problem('version_not_found', {
        detail: `Nothing is offered as ${app_slug}${version === undefined ? '' : ` ${version}`} on the channel ${channel}.`,
      });
    return found;
  }

  /** What a form of the environment offers, newest first. */
  async installable(caller: Caller, envId: string): Promise<{ items: { value: string; label: string }[] }> {
    const { sql } = this.#ctx.db;
    if (envId === SYSTEM.envId) return { items: [] };
    const rows = await selectListings(
      sql,
      sql`where status = 'published' and ${seenBy(sql, viewerOf(caller, envId))} order by published_at desc, listing_id desc limit 200`,
    );
    return {
      items: rows.map(({ listing_id, name, version, channel }) => ({
        value: listing_id,
        label: `${name} ${version}${channel === STABLE ? '' : ` (${channel})`}`,
      })),
    };
  }

  async #named(caller: Caller, envId: string, listingId: string, { app_slug, channel, version }: Wanted): Promise<Listing> {
    const listing = await this.#listings.seen(viewerOf(caller, envId), listingId);
    const other = (app_slug !== undefined && app_slug !== listing.app_slug) || (channel !== undefined && channel !== listing.channel);
    if (other)
      throw this.#ctx.problem('listing_ambiguous', {
        detail: `The listing is ${listing.app_slug} on the channel ${listing.channel}. Name it by one of the two ways.`,
      });
    if (version !== undefined && version !== listing.version)
      throw this.#ctx.problem('version_not_found', { detail: `The listing is the version ${listing.version}.` });
    const allowed = listing.status === 'published' || (listing.status === 'deprecated' && version !== undefined);
    if (!allowed)
      throw this.#ctx.problem('listing_not_installable', {
        detail:
          listing.status === 'deprecated'
            ? `It is deprecated: ask for it by version "${listing.version}".`
            : `It is ${listing.status}, not published.`,
      });
    return listing;
  }
}
