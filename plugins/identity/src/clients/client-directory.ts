import { SYSTEM } from '@platform/sdk';
import type { AdapterPayload } from 'oidc-provider';
import { CIBA, type RegisteredClient, type RegisteredClients } from './registered-clients.ts';
import type { Ctx } from '../context.ts';
import type { Workloads } from '../access/workloads.ts';

export const CONSOLE_CLIENT = 'console';
export const TOKEN_EXCHANGE = 'urn:ietf:params:oauth:grant-type:token-exchange';
const OPENID = new Set(['openid', 'email', 'profile', 'offline_access']);

/**
 * OAuth clients: the console's gateway as a constant, workloads by their certificates (RFC 8705), applications as they registered (RFC
 * 7591).
 */
export class ClientDirectory {
  readonly #ctx: Ctx;
  readonly #workloads: Workloads;
  readonly #registered: RegisteredClients;

  constructor(ctx: Ctx, { workloads, registered }: { workloads: Workloads; registered: RegisteredClients }) {
    this.#ctx = ctx;
    this.#workloads = workloads;
    this.#registered = registered;
  }

  async find(clientId: string, envId: string): Promise<AdapterPayload | undefined> {
    if (clientId === CONSOLE_CLIENT && envId === SYSTEM.envId) return this.#console();
    // Nobody is called so, and the database would not be asked but fail (F-19).
    if (clientId.includes('\0')) return undefined;
    const registered = await this.#registered.find(envId, clientId);
    if (registered) return payloadOf(registered);
    if (!/^[a-z][a-z0-9-]{0,59}$/.test(clientId)) return undefined;
    const workload = await this.#workloads.find(clientId);
    if (!workload) return undefined;
    const delegator = workload.vertical === 'platform' && clientId.endsWith('-delegator');
    // Workloads are the platform's, not a tenant's: their own tokens come from the system issuer only. A customer's comes from the
    // customer's.
    if (envId !== SYSTEM.envId) return delegator ? this.#assisting(clientId) : undefined;
    return {
      ...byCertificate(clientId),
      grant_types: ['client_credentials', ...(delegator ? [TOKEN_EXCHANGE] : [])],
      tls_client_certificate_bound_access_tokens: true,
    };
  }

  /** An application as it registered itself; `undefined` for the console and workloads. */
  registered(envId: string, clientId: string): Promise<RegisteredClient | undefined> {
    return this.#registered.find(envId, clientId);
  }

  /** Assisted sign-in at the customer's realm: CIBA, with a proof of possession (G-AUTH-03). */
  #assisting(clientId: string): AdapterPayload {
    return {
      ...byCertificate(clientId),
      client_name: 'Customer support',
      grant_types: [CIBA],
      scope: 'openid email profile',
      dpop_bound_access_tokens: true,
      backchannel_token_delivery_mode: 'poll',
    };
  }

  #console(): AdapterPayload {
    const { publicOrigin, host } = this.#ctx.platform;
    return {
      client_id: CONSOLE_CLIENT,
      client_name: 'Console',
      grant_types: ['authorization_code', 'refresh_token'],
      response_types: ['code'],
      redirect_uris: [`${publicOrigin(host('bff.console'))}/auth/callback`],
      token_endpoint_auth_method: 'tls_client_auth',
      tls_client_auth_subject_dn: 'CN=m2m-bff',
      require_pushed_authorization_requests: true,
      id_token_signed_response_alg: 'EdDSA',
      application_type: 'web',
      scope: 'openid email profile',
    };
  }
}

const byCertificate = (clientId: string) => ({
  client_id: clientId,
  client_name: clientId,
  response_types: [],
  redirect_uris: [],
  token_endpoint_auth_method: 'tls_client_auth' as const,
  tls_client_auth_subject_dn: `CN=m2m-${clientId}`,
});

/** As the protocol core reads a client: the standard's members, and the hash in the place of the secret. */
export function payloadOf({
  client_id: clientId,
  metadata,
  secret_hash: hash,
}: Pick<RegisteredClient, 'client_id' | 'metadata' | 'secret_hash'>): AdapterPayload {
  const { first_party: _own, app_instance_id: _instance, consent_accounts_uri: _source, scope, ...standard } = metadata;
  return {
    ...standard,
    client_id: clientId,
    scope: scope
      .split(' ')
      .filter(name => OPENID.has(name))
      .join(' '),
    ...(hash === null ? {} : { client_secret: hash, client_secret_expires_at: 0 }),
  } as AdapterPayload;
}
