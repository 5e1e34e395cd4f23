import type { listingRoutes } from '../../contract/routes/listing-routes.ts';
import type { Handlers } from '../context.ts';
import type { ListingMedia } from './listing-media.ts';
import { viewerOf } from './listing-row.ts';
import type { Listings } from './listings.ts';

/** Routes of listings to who answers them. */
export const listingHandlers = ({
  listings,
  media,
}: {
  listings: Listings;
  media: ListingMedia;
}): Handlers<keyof typeof listingRoutes> => ({
  listListings: ({ caller, targetEnvId, query }) => listings.list(caller, targetEnvId, query),
  createListing: request => listings.create(request),
  getListing: ({ caller, targetEnvId, params }) => listings.get(caller, targetEnvId, params.listing_id),
  updateListing: request => listings.update(request),
  deleteListing: request => listings.remove(request),
  addMedia: request => media.add(request),
  removeMedia: request => media.remove(request),
  media: exchange => media.read(exchange),
  listingRows: ({ caller, env, query }) => listings.list(caller, env, query),
  listingRow: ({ caller, env, params }) => listings.get(caller, env, params.listing_id),
  listingVersions: ({ caller, env, params }) => listings.versions(viewerOf(caller, env), params.listing_id),
  listingRoles: ({ caller, env, params }) => listings.roles(viewerOf(caller, env), params.listing_id),
  listingImages: async ({ caller, env, params }) => ({
    items: (await listings.seen(viewerOf(caller, env), params.listing_id)).media,
  }),
  publishListing: request => listings.to('published', request),
  deprecateListing: request => listings.to('deprecated', request),
  archiveListing: request => listings.to('archived', request),
});
