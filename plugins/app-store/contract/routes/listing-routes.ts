import { del, get, Id, Page, PageQuery, post, put, raw, SortQuery, Type } from '@platform/sdk/contract';
import { Listing, ListingChange, Media, MediaRole, NewListing, NewMedia } from '../schema/listing.ts';

const ofListing = { listing_id: Id };

const all = '/v1/app/store/listings' as const;
const one = `${all}/{listing_id}` as const;
const rows = '/v1/app/admin/listings' as const;
const row = `${rows}/{listing_id}` as const;
const seen = {
  gate: { authenticated: 'What a caller sees of the store depends on the listing, not on an action (G-APP-08)' },
  env: 'any',
} as const;
const reads = { gate: { any: ['app:listings:read', 'app:listings:admin'] }, env: 'own' } as const;
const administers = { gate: 'app:listings:admin', env: 'own' } as const;
/** A page moves a listing on. */
const moves = {
  ...administers,
  ifMatch: true,
  returns: Listing,
  problems: ['listing_not_found', 'listing_status_refused'],
  hidden: true,
} as const;
const content = ['role_name_taken', 'role_scope_refused', 'signup_role_undeclared'] as const;
const filters = {
  category: Type.Optional(Type.String({ title: 'Category', maxLength: 40 })),
  app_slug: Type.Optional(Type.String({ title: 'Application', maxLength: 64 })),
  channel: Type.Optional(Type.String({ title: 'Channel', maxLength: 64 })),
  q: Type.Optional(Type.String({ title: 'Words', maxLength: 100 })),
  ...SortQuery('name', 'app_slug'),
  ...PageQuery,
};

/** The store (G-APP-01, G-APP-02). */
export const listingRoutes = {
  listListings: get(all, { summary: 'Listings that the caller sees, newest first', ...seen, query: filters, returns: Page(Listing) }),
  createListing: post(all, {
    summary: 'List a release of an application',
    ...administers,
    body: NewListing,
    returns: Listing,
    status: 201,
    problems: [...content, 'listing_exists', 'app_slug_taken'],
    emits: ['platform:app:listing:created'],
  }),
  getListing: get(one, { params: ofListing, summary: 'One listing', ...seen, returns: Listing, problems: ['listing_not_found'] }),
  updateListing: put(one, {
    params: ofListing,
    ifMatch: true,
    summary: 'Replace what a listing says, or move it on by its status alone',
    ...administers,
    body: ListingChange,
    returns: Listing,
    problems: [...content, 'listing_not_found', 'listing_status_refused', 'immutable_field'],
    emits: ['platform:app:listing:updated', 'platform:app:listing:published'],
  }),
  deleteListing: del(one, {
    params: ofListing,
    ifMatch: true,
    summary: 'Delete a listing with its images',
    ...administers,
    problems: ['listing_not_found', 'listing_installed'],
    emits: ['platform:app:listing:deleted'],
  }),
  addMedia: post(`${one}/media`, {
    params: ofListing,
    ifMatch: true,
    summary: 'Give a listing an image; one of the same role makes way',
    ...administers,
    body: NewMedia,
    returns: Media,
    status: 201,
    limit: 7_340_032,
    problems: ['listing_not_found', 'media_invalid', 'media_too_large', 'media_unreachable'],
    emits: ['platform:app:listing:updated'],
  }),
  removeMedia: del(`${one}/media/{role}`, {
    params: { listing_id: Id, role: MediaRole },
    ifMatch: true,
    summary: 'Take an image away',
    ...administers,
    problems: ['listing_not_found', 'media_not_found'],
    emits: ['platform:app:listing:updated'],
  }),
  media: raw(`${one}/images/{role}`, {
    params: { listing_id: Id, role: MediaRole },
    summary: 'The bytes of an image, for who sees its listing',
    idempotency: { none: 'Nothing is made here: it is read alone' },
    ...seen,
    problems: ['listing_not_found', 'media_not_found', 'media_unreachable', 'method_refused'],
  }),

  // What pages read: those who may see or administer listings of the environment.
  listingRows: get(rows, {
    summary: 'Listings as the environment sees them',
    ...reads,
    query: filters,
    returns: Page(Listing),
    hidden: true,
  }),
  listingRow: get(row, {
    params: ofListing,
    summary: 'One listing as the environment sees it',
    ...reads,
    returns: Listing,
    problems: ['listing_not_found'],
    hidden: true,
  }),
  listingVersions: get(`${row}/versions`, {
    params: ofListing,
    summary: 'Other releases of the same application and channel',
    ...reads,
    returns: Type.Object({ items: Type.Array(Listing) }),
    problems: ['listing_not_found'],
    hidden: true,
  }),
  listingRoles: get(`${row}/roles`, {
    params: ofListing,
    summary: 'Roles that a listing brings, and what each may do',
    ...reads,
    returns: Type.Object({ items: Type.Array(Type.Object({ name: Type.String(), scopes: Type.String(), signup: Type.Boolean() })) }),
    problems: ['listing_not_found'],
    hidden: true,
  }),
  listingImages: get(`${row}/images`, {
    params: ofListing,
    summary: 'Images of a listing',
    ...reads,
    returns: Type.Object({ items: Type.Array(Media) }),
    problems: ['listing_not_found'],
    hidden: true,
  }),
  // Pages only post (G-K-18): what a listing goes on to, one route for each.
  publishListing: post(`${one}/publish`, {
    params: ofListing,
    summary: 'Offer it for installing',
    ...moves,
    emits: ['platform:app:listing:updated', 'platform:app:listing:published'],
  }),
  deprecateListing: post(`${one}/deprecate`, {
    params: ofListing,
    summary: 'Install it only where somebody asks for this very version',
    ...moves,
    emits: ['platform:app:listing:updated'],
  }),
  archiveListing: post(`${one}/archive`, {
    params: ofListing,
    summary: 'Install it no more',
    ...moves,
    emits: ['platform:app:listing:updated'],
  }),
} as const;
