import { Id, nullable, type Static, Type } from '@platform/sdk/contract';
import { InstallStepKind } from '@platform/workflow/contract';
import { AppSlug, Channel, Version } from './field.ts';

const Address = Type.String({ maxLength: 2_000, pattern: '^https?://[\\x21-\\x7e]+$' });
export const Visibility = Type.Union(
  [
    Type.Literal('usr', { title: 'Its owner' }),
    Type.Literal('env', { title: 'Its environment' }),
    Type.Literal('public', { title: 'Everybody' }),
  ],
  {
    title: 'Who sees it',
  },
);
export const ListingStatus = Type.Union(
  [Type.Literal('draft'), Type.Literal('published'), Type.Literal('deprecated'), Type.Literal('archived')],
  { title: 'Status' },
);
export type ListingStatus = Static<typeof ListingStatus>;

const Role = Type.Object({
  name: Type.String({ pattern: '^[a-z][a-z0-9_.-]{0,63}$' }),
  scopes: Type.Array(Type.String({ pattern: '^[a-z0-9][a-z0-9:_.-]{0,199}$' }), { maxItems: 200 }),
});
export type Role = Static<typeof Role>;
export const OauthDefaults = Type.Object({
  redirect_uris: Type.Optional(Type.Array(Address, { maxItems: 20 })),
  grant_types: Type.Optional(Type.Array(Type.String({ maxLength: 100 }), { maxItems: 5 })),
  token_endpoint_auth_method: Type.Optional(Type.String({ maxLength: 64 })),
  scopes: Type.Optional(Type.Array(Type.String({ maxLength: 200 }), { maxItems: 100 })),
});
export const MediaRole = Type.Union([Type.Literal('icon'), Type.Literal('hero'), Type.Literal('screenshot')], { title: 'What it shows' });
export const Media = Type.Object({ role: MediaRole, resolution: Type.String(), storage_key: Type.String() });
export type Media = Static<typeof Media>;
export const ContentType = Type.Union(
  [
    Type.Literal('image/png', { title: 'PNG' }),
    Type.Literal('image/jpeg', { title: 'JPEG' }),
    Type.Literal('image/webp', { title: 'WebP' }),
  ],
  {
    title: 'Kind of image',
  },
);
export type ContentType = Static<typeof ContentType>;

/** What its developer says of a listing and may say anew. */
const said = {
  name: Type.String({ title: 'Name', minLength: 1, maxLength: 120 }),
  summary: Type.String({ title: 'In a sentence', maxLength: 200, default: '' }),
  description: Type.String({ title: 'Description', maxLength: 10_000, default: '' }),
  categories: Type.Array(Type.String({ pattern: '^[a-z0-9][a-z0-9-]{0,39}$' }), { title: 'Categories', maxItems: 10, uniqueItems: true }),
  backend_url: Type.String({
    ...Address,
    title: 'Backend address',
    widget: 'text',
    description: 'Where the application runs; the platform does not run it',
  }),
  dcr_supported: Type.Boolean({ title: 'Registers clients itself', default: false }),
  oauth_defaults: Type.Object(OauthDefaults.properties, { title: 'OAuth defaults' }),
  visibility: Visibility,
  roles: Type.Array(Role, { title: 'Roles', maxItems: 50 }),
  default_signup_role: Type.Union([Type.String({ maxLength: 64 }), Type.Null()], { title: 'Role of who signs up' }),
  onboarding: Type.Array(InstallStepKind, { title: 'Steps before an install', maxItems: 10 }),
};

/** G-APP-01. */
export const Listing = Type.Object({
  listing_id: Id,
  org_id: Id,
  env_id: Id,
  owner_user_id: Type.String(),
  app_slug: Type.String(),
  channel: Type.String(),
  version: Type.String(),
  ...said,
  media: Type.Array(Media),
  statistics_property_id: nullable(Id),
  status: ListingStatus,
  published_at: nullable(Type.String()),
  created_at: Type.String(),
  updated_at: Type.String(),
  row_version: Type.Integer(),
});
export type Listing = Static<typeof Listing>;

const { name, backend_url, visibility, ...rest } = said;
const optional = {
  summary: Type.Optional(rest.summary),
  description: Type.Optional(rest.description),
  categories: Type.Optional(rest.categories),
  dcr_supported: Type.Optional(rest.dcr_supported),
  oauth_defaults: Type.Optional(rest.oauth_defaults),
  roles: Type.Optional(rest.roles),
  default_signup_role: Type.Optional(rest.default_signup_role),
  onboarding: Type.Optional(rest.onboarding),
};
export const NewListing = Type.Object({
  app_slug: AppSlug,
  channel: Type.Optional(Channel),
  version: Version,
  name,
  backend_url,
  visibility,
  ...optional,
});
export type NewListing = Static<typeof NewListing>;

/** Everything that may change, or `status` by itself: what is left out of a replacement is what it was by default. */
export const ListingChange = Type.Object({
  name: Type.Optional(name),
  backend_url: Type.Optional(backend_url),
  visibility: Type.Optional(visibility),
  ...optional,
  status: Type.Optional(ListingStatus),
  app_slug: Type.Optional(Type.String({ maxLength: 64 })),
  channel: Type.Optional(Type.String({ maxLength: 64 })),
  version: Type.Optional(Type.String({ maxLength: 64 })),
});
export type ListingChange = Static<typeof ListingChange>;

export const NewMedia = Type.Object({
  role: MediaRole,
  resolution: Type.Optional(
    Type.String({ title: 'Resolution', maxLength: 32, pattern: '^[0-9A-Za-z@x.]+$', description: 'Read from the image when left out' }),
  ),
  content_type: ContentType,
  data_base64: Type.String({
    title: 'Image',
    widget: 'file',
    minLength: 8,
    maxLength: 7_200_000,
    description: 'PNG, JPEG or WebP, at most 5 MiB',
  }),
});
