import type { Sql } from '@platform/sdk';
import type { AppInstance, CustomDomain } from '../../contract/schema/app.ts';

/** An app instance as it is stored, with the organization and the custom domain beside it. */
export interface AppRow extends Omit<AppInstance, 'gateway_hostname' | 'custom_domain'> {
  readonly created_at: string;
  readonly fqdn: string | null;
  /** What the challenge must show, of whatever type it is. */
  readonly txt_value: string;
  readonly challenge_type: 'TXT' | 'CNAME';
  readonly challenge_name: string | null;
  readonly domain_status: CustomDomain['status'];
  readonly verified_at: string | null;
  readonly last_error: string | null;
}

/** Every column of {@link AppRow}; `condition` is what follows the joins. */
export const selectApps = (sql: Sql, condition: unknown): Promise<AppRow[]> => sql<AppRow[]>`
  select a.app_instance_id, a.env_id, e.org_id, a.app_id, a.slug, a.name, a.hostname, a.oauth_client_id, a.feature_flags,
    a.scope_whitelist, a.service_whitelist,
    a.auth_mode, a.auth_group, a.allow_signup, a.status, a.version, a.created_at, d.fqdn, d.txt_value, d.challenge_type, d.challenge_name,
      d.status as domain_status, d.verified_at, d.last_error
  from app_instances a join envs e using (env_id) left join custom_domains d using (app_instance_id) ${condition}`;

/** What is asked of DNS about a custom domain. */
export const challengeOf = ({ fqdn, txt_value: value, hostname: target, challenge_type: type, challenge_name: name }: AppRow) => ({
  fqdn: fqdn as string,
  value,
  target,
  challenge: { type, name: name ?? challengeName(fqdn as string) },
});

export const challengeName = (fqdn: string): string => `_platform-challenge.${fqdn}`;

/** The custom domain with the records its DNS must have. */
export const domainOf = (row: AppRow): CustomDomain | null =>
  row.fqdn === null
    ? null
    : {
        fqdn: row.fqdn,
        status: row.domain_status,
        txt_name: challengeName(row.fqdn),
        txt_value: row.txt_value,
        cname_target: row.hostname,
        verified_at: row.verified_at,
        last_error: row.last_error,
      };

/** As the wire shows it (G-SYS-08); the gateway's twin is derived, never stored (C30). */
export function appInstance(row: AppRow): AppInstance {
  const {
    created_at: _created,
    fqdn: _fqdn,
    txt_value: _value,
    challenge_type: _type,
    challenge_name: _name,
    domain_status: _status,
    verified_at: _verified,
    last_error: _error,
    ...instance
  } = row;
  return { ...instance, gateway_hostname: `bff.${row.hostname}`, custom_domain: domainOf(row) };
}

/** Every host the instance answers on, gateway twins included: what resolvers forget when it changes. */
export function hostsOf({ hostname, fqdn }: Pick<AppRow, 'hostname' | 'fqdn'>): string[] {
  return [hostname, ...(fqdn ? [fqdn] : [])].flatMap(host => [host, `bff.${host}`]);
}
