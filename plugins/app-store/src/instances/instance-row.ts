import type { Sealed, Sql } from '@platform/sdk';
import type { Instance, InstanceStatus } from '../../contract/schema/instance.ts';
import type { Role } from '../../contract/schema/listing.ts';

/** What of its listing an install goes by, as it was then. */
export interface InstallManifest {
  readonly name: string;
  readonly roles: readonly Role[];
  readonly default_signup_role: string | null;
  readonly oauth_defaults: {
    readonly redirect_uris?: readonly string[];
    readonly grant_types?: readonly string[];
    readonly token_endpoint_auth_method?: string;
    readonly scopes?: readonly string[];
  };
  readonly onboarding: readonly string[];
  readonly listing_env_id: string;
}

/** An instance as it is stored. */
export interface InstanceRow extends Omit<Instance, 'gateway_domain' | 'oauth_client'> {
  readonly default_domain: string;
  readonly client_id: string | null;
  readonly client_id_issued_at: number | string | null;
  readonly client_secret: Sealed | null;
  readonly auth_url: string;
  readonly public_signup: boolean;
  readonly manifest: InstallManifest;
  readonly open: boolean;
  readonly leased_until: string | null;
  readonly created_by: string;
}

export const selectInstances = (sql: Sql, tail: unknown): Promise<InstanceRow[]> => sql<InstanceRow[]>`select * from instances ${tail}`;

/** As the wire shows it (G-APP-03): the gateway's name is derived, never stored or configured (APP-029). */
export const instanceOf = (row: InstanceRow): Instance => ({
  instance_id: row.instance_id,
  listing_id: row.listing_id,
  app_slug: row.app_slug,
  channel: row.channel,
  version: row.version,
  org_id: row.org_id,
  env_id: row.env_id,
  name: row.name,
  slug: row.slug,
  domain: row.domain,
  gateway_domain: `bff.${row.domain}`,
  app_instance_id: row.app_instance_id,
  // The client of an install that failed is gone; its id is kept to find what came late.
  oauth_client:
    row.client_id === null || row.status === 'failed'
      ? null
      : { client_id: row.client_id, client_id_issued_at: Number(row.client_id_issued_at) },
  roles: row.roles,
  groups: row.groups,
  statistics_property_id: row.statistics_property_id,
  workflow_run_id: row.workflow_run_id,
  status: row.status,
  last_error: row.last_error,
  created_at: row.created_at,
  updated_at: row.updated_at,
});

export const snippetOf = ({ domain, client_id }: Pick<InstanceRow, 'domain' | 'client_id'>): string =>
  `<script type="module" src="https://bff.${domain}/sdk.js" data-client="${client_id}"></script>`;

/** Under which purpose a client's secret is sealed. */
export const secretPurpose = (instanceId: string): string => `app:client-secret:${instanceId}`;

export const LIVE: readonly InstanceStatus[] = ['active', 'suspended'];
