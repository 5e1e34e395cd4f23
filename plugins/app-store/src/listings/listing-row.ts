import { type Caller, nameOf, type Sql } from '@platform/sdk';
import type { Listing } from '../../contract/schema/listing.ts';

/** Whose eyes a listing is looked at with: a person or workload, in an environment. */
export interface Viewer {
  readonly name: string;
  readonly envId: string | undefined;
}

export const viewerOf = (caller: Caller, envId: string | undefined): Viewer => ({ name: nameOf(caller), envId: envId ?? caller.envId });

/**
 * A condition on `listings`: whether the viewer sees one (G-APP-01). What was never published, or is not offered any more, is the
 * business of its own environment alone.
 */
export const seenBy = (sql: Sql, { name, envId }: Viewer): unknown => sql`(
  (visibility = 'usr' and owner_user_id = ${name})
  or (visibility = 'env' and env_id = ${envId ?? null})
  or (visibility = 'public' and (env_id = ${envId ?? null} or owner_user_id = ${name} or status in ('published', 'deprecated'))))`;

/** Listings with their images, as the wire shows them; `tail` is what follows `from`. */
export const selectListings = (sql: Sql, tail: unknown): Promise<Listing[]> => sql<Listing[]>`
  select listing_id, org_id, env_id, owner_user_id, app_slug, channel, version, name, summary, description, categories, backend_url,
    dcr_supported, oauth_defaults, visibility,
    roles, default_signup_role, onboarding, statistics_property_id, status, published_at, created_at, updated_at, row_version,
    (select coalesce(jsonb_agg(jsonb_build_object('role', m.role, 'resolution', m.resolution, 'storage_key', m.storage_key)
      order by m.role), '[]')
     from listing_media m where m.listing_id = listings.listing_id) as media
  from listings ${tail}`;

export const etagOf = ({ row_version }: Pick<Listing, 'row_version'>): Record<string, string> => ({ etag: `"${row_version}"` });
