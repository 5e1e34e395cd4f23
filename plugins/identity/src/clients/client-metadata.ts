import { canonicalScope } from '../access/scope-name.ts';
import { CIBA, type ClientMetadata, DEVICE_CODE } from './registered-clients.ts';

/** A refusal in the words of RFC 7591 3.2.2. */
export class MetadataRefused extends Error {
  readonly code: 'invalid_client_metadata' | 'invalid_redirect_uri' | 'invalid_software_statement';
  constructor(code: MetadataRefused['code'], description: string) {
    super(description);
    this.code = code;
  }
}

const OPENID = ['openid', 'email', 'profile', 'offline_access'];
const GRANTS = ['authorization_code', 'refresh_token', DEVICE_CODE, CIBA];
const METHODS = ['client_secret_basic', 'client_secret_post', 'private_key_jwt', 'tls_client_auth', 'none'];
export const SECRET_METHODS = ['client_secret_basic', 'client_secret_post'];
/** RS256 for libraries that know nothing else, and only where the client chooses it. */
const ALGORITHMS = ['EdDSA', 'ES256', 'ML-DSA-65', 'RS256'] as const;
const LOOPBACK = ['localhost', '127.0.0.1', '[::1]'];
const MOST = { redirects: 20, uri: 2_000, name: 200, keys: 10, scope: 4_000 } as const;
const PRIVATE_MEMBERS = ['d', 'priv', 'k', 'p', 'q', 'dp', 'dq', 'qi', 'oth'];

export interface MetadataRules {
  /** Actions a person's token can name, canonical. */
  readonly actions: ReadonlySet<string>;
  /** Whether plain HTTP to this machine may be asked for accounts: where people develop. */
  readonly loopbackSources: boolean;
}
type Members = Readonly<Record<string, unknown>>;

/** The metadata a client asked for, with defaults, or why not. Members nobody here knows are left out (RFC 7591 2). */
export function acceptMetadata(asked: Members, { actions, loopbackSources }: MetadataRules): ClientMetadata {
  if (asked['software_statement'] !== undefined)
    throw new MetadataRefused('invalid_software_statement', 'software statements are not accepted');
  if (asked['jwks_uri'] !== undefined) throw refuse('jwks_uri is not fetched; send the keys as jwks');
  const grantTypes = listOf(asked, 'grant_types', GRANTS, ['authorization_code']);
  const method = oneOf(asked, 'token_endpoint_auth_method', METHODS, 'client_secret_basic');
  const redirects = redirectsOf(asked, grantTypes);
  const loopback = redirects.some(uri => uri.startsWith('http:'));
  const applicationType = oneOf(asked, 'application_type', ['web', 'native'] as const, loopback ? 'native' : 'web');
  if (loopback && applicationType === 'web')
    throw new MetadataRefused('invalid_redirect_uri', 'a redirect to this machine is for application_type native');
  if (method === 'none' && grantTypes.includes(CIBA)) throw refuse('CIBA needs a client that authenticates');
  const scope = scopesOf(asked, actions);
  return {
    client_name: text(asked, 'client_name', MOST.name) ?? 'Application',
    redirect_uris: redirects,
    grant_types: grantTypes,
    response_types: listOf(asked, 'response_types', ['code'], grantTypes.includes('authorization_code') ? ['code'] : []),
    token_endpoint_auth_method: method,
    application_type: applicationType,
    id_token_signed_response_alg: oneOf(asked, 'id_token_signed_response_alg', ALGORITHMS, 'EdDSA'),
    scope,
    ...some('client_uri', webAddress(asked, 'client_uri')),
    ...some('logo_uri', webAddress(asked, 'logo_uri')),
    ...some('policy_uri', webAddress(asked, 'policy_uri')),
    ...some('tos_uri', webAddress(asked, 'tos_uri')),
    ...some('software_id', text(asked, 'software_id', 200)),
    ...some('software_version', text(asked, 'software_version', 200)),
    ...some('jwks', keysOf(asked, method)),
    ...some('tls_client_auth_subject_dn', subjectOf(asked, method)),
    ...flag(asked, 'require_pushed_authorization_requests'),
    ...flag(asked, 'tls_client_certificate_bound_access_tokens'),
    // G-AUTH-03: a CIBA token is taken with a proof of possession only.
    ...(grantTypes.includes(CIBA)
      ? { dpop_bound_access_tokens: true, backchannel_token_delivery_mode: 'poll' }
      : flag(asked, 'dpop_bound_access_tokens')),
    first_party: flag(asked, 'first_party')['first_party'] ?? false,
    ...some('app_instance_id', instanceOf(asked)),
    ...some('consent_accounts_uri', sourceOf(asked, loopbackSources)),
  };
}

/** What the holder of a registration access token may not give itself: rights come from the workload that registered it. */
export function widens(before: ClientMetadata, after: ClientMetadata): string | undefined {
  for (const member of ['first_party', 'app_instance_id', 'consent_accounts_uri', 'tls_client_auth_subject_dn'] as const)
    if (before[member] !== after[member]) return member;
  const held = new Set(before.scope.split(' '));
  return after.scope.split(' ').some(scope => !held.has(scope))
    ? 'scope'
    : after.grant_types.some(grant => !before.grant_types.includes(grant))
      ? 'grant_types'
      : undefined;
}

function redirectsOf(asked: Members, grantTypes: readonly string[]): string[] {
  const uris = asked['redirect_uris'] ?? [];
  const bad = (description: string) => new MetadataRefused('invalid_redirect_uri', description);
  if (!Array.isArray(uris) || uris.length > MOST.redirects) throw bad(`redirect_uris is a list of at most ${MOST.redirects}`);
  if (grantTypes.includes('authorization_code') ? uris.length === 0 : uris.length > 0)
    throw bad('redirect_uris go with the grant authorization_code, and with it only');
  for (const uri of uris as unknown[]) {
    if (typeof uri !== 'string' || uri.length > MOST.uri || !/^https?:\/\/[\x21-\x7e]+$/.test(uri) || !URL.canParse(uri))
      throw bad('a redirect URI is an absolute https address');
    const { protocol, hostname, hash, username, password } = new URL(uri);
    if (uri.includes('#') || hash || username || password || uri.includes('*') || uri.includes('\\'))
      throw bad('a redirect URI has no fragment, no credentials and no wildcard');
    if (protocol !== 'https:' && !LOOPBACK.includes(hostname))
      throw bad('a redirect URI is https, or http to 127.0.0.1, [::1] or localhost');
  }
  return [...new Set(uris as string[])];
}

function scopesOf(asked: Members, actions: ReadonlySet<string>): string {
  const scope = text(asked, 'scope', MOST.scope);
  if (scope === undefined) return OPENID.join(' ');
  const wanted = [...new Set(scope.split(' ').filter(Boolean).map(canonicalScope))];
  const unknown = wanted.find(name => !OPENID.includes(name) && !actions.has(name));
  if (unknown !== undefined) throw refuse('scope names something nobody can grant to an application');
  return wanted.join(' ');
}

function keysOf(asked: Members, method: string): object | undefined {
  const jwks = asked['jwks'];
  if (jwks === undefined && method !== 'private_key_jwt') return undefined;
  const keys = (jwks as { keys?: unknown } | null | undefined)?.keys;
  if (!Array.isArray(keys) || keys.length === 0 || keys.length > MOST.keys) throw refuse(`jwks holds one to ${MOST.keys} keys`);
  for (const key of keys as unknown[]) {
    if (typeof key !== 'object' || key === null || JSON.stringify(key).length > 8_192) throw refuse('a key of jwks is not a JSON Web Key');
    if (PRIVATE_MEMBERS.some(member => member in key)) throw refuse('a key of jwks carries its private half');
  }
  return { keys };
}

function subjectOf(asked: Members, method: string): string | undefined {
  if (method !== 'tls_client_auth') return undefined;
  const subject = asked['tls_client_auth_subject_dn'];
  if (typeof subject !== 'string' || !/^CN=m2m-[a-z][a-z0-9-]{0,59}$/.test(subject))
    throw refuse('tls_client_auth_subject_dn names a workload: CN=m2m-{name}');
  return subject;
}

function instanceOf(asked: Members): string | undefined {
  const id = text(asked, 'app_instance_id', 36);
  if (id !== undefined && !/^[0-9a-f]{8}-[0-9a-f-]{27}$/.test(id)) throw refuse('app_instance_id is not an id');
  return id;
}

function sourceOf(asked: Members, loopback: boolean): string | undefined {
  const uri = text(asked, 'consent_accounts_uri', MOST.uri);
  if (uri === undefined) return undefined;
  const url = URL.parse(uri);
  const local = loopback && url?.protocol === 'http:' && LOOPBACK.includes(url.hostname);
  if (!url || url.username || url.password || url.hash || (url.protocol !== 'https:' && !local))
    throw refuse('consent_accounts_uri is an https address');
  return uri;
}

function webAddress(asked: Members, member: string): string | undefined {
  const uri = text(asked, member, MOST.uri);
  if (uri !== undefined && URL.parse(uri)?.protocol !== 'https:') throw refuse(`${member} is an https address`);
  return uri;
}

function text(asked: Members, member: string, most: number): string | undefined {
  const value = asked[member];
  if (value === undefined || value === null || value === '') return undefined;
  // biome-ignore lint/suspicious/noControlCharactersInRegex: they are what is refused
  if (typeof value !== 'string' || value.length > most || /[\u0000-\u001f\u007f\u202a-\u202e\u2066-\u2069]/.test(value))
    throw refuse(`${member} is a line of at most ${most} characters`);
  return value;
}

function oneOf<T extends string>(asked: Members, member: string, allowed: readonly T[], fallback: T): T {
  const value = asked[member] ?? fallback;
  if (!allowed.includes(value as T)) throw refuse(`${member} is one of: ${allowed.join(', ')}`);
  return value as T;
}

function listOf(asked: Members, member: string, allowed: readonly string[], fallback: readonly string[]): string[] {
  const value = asked[member] ?? fallback;
  if (!Array.isArray(value) || value.length > allowed.length || value.some(each => !allowed.includes(each as string)))
    throw refuse(`${member} may hold: ${allowed.join(', ')}`);
  return [...new Set(value as string[])];
}

function flag<M extends string>(asked: Members, member: M): { readonly [K in M]?: boolean } {
  const value = asked[member];
  if (value === undefined || value === null) return {};
  if (typeof value !== 'boolean') throw refuse(`${member} is true or false`);
  return { [member]: value } as { readonly [K in M]?: boolean };
}

const some = (member: string, value: unknown) => (value === undefined ? {} : { [member]: value });
const refuse = (description: string) => new MetadataRefused('invalid_client_metadata', description);
