import { SYSTEM } from '@platform/sdk';
import type { AdapterPayload } from 'oidc-provider';
import type { Ctx } from './context.ts';
import type { Workloads } from './workloads.ts';

export const CONSOLE_CLIENT = 'console';
export const TOKEN_EXCHANGE = 'urn:ietf:params:oauth:grant-type:token-exchange';

/** OAuth clients: the console's gateway as a constant, workloads by their certificates (RFC 8705). */
export class ClientDirectory {
  readonly #ctx: Ctx;
  readonly #workloads: Workloads;

  constructor(ctx: Ctx, workloads: Workloads) {
    this.#ctx = ctx;
    this.#workloads = workloads;
  }

  async find(clientId: string, envId: string): Promise<AdapterPayload | undefined> {
    if (clientId === CONSOLE_CLIENT && envId === SYSTEM.envId) return this.#console();
    // Workloads are the platform's, not a tenant's: their tokens come from the system issuer only.
    if (envId !== SYSTEM.envId || !/^[a-z][a-z0-9-]{0,59}$/.test(clientId)) return undefined;
    const workload = await this.#workloads.find(clientId);
    if (!workload) return undefined;
    return {
      client_id: clientId,
      client_name: clientId,
      grant_types: ['client_credentials', ...(workload.vertical === 'platform' && clientId.endsWith('-delegator') ? [TOKEN_EXCHANGE] : [])],
      response_types: [],
      redirect_uris: [],
      token_endpoint_auth_method: 'tls_client_auth',
      tls_client_auth_subject_dn: `CN=m2m-${clientId}`,
      tls_client_certificate_bound_access_tokens: true,
    };
  }

  #console(): AdapterPayload {
    const { publicOrigin, domain } = this.#ctx.platform;
    return {
      client_id: CONSOLE_CLIENT,
      client_name: 'Console',
      grant_types: ['authorization_code', 'refresh_token'],
      response_types: ['code'],
      redirect_uris: [`${publicOrigin(`bff.console.ops.sys.${domain}`)}/auth/callback`],
      token_endpoint_auth_method: 'tls_client_auth',
      tls_client_auth_subject_dn: 'CN=m2m-bff',
      require_pushed_authorization_requests: true,
      id_token_signed_response_alg: 'EdDSA',
      application_type: 'web',
      scope: 'openid email profile',
    };
  }
}
