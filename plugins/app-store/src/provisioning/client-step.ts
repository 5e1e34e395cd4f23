import type { Ctx } from '../context.ts';
import { type InstanceRow, secretPurpose } from '../instances/instance-row.ts';
import type { ProvisioningStep } from './provisioning-step.ts';
import { callbacksOf } from './tenant-hosts.ts';

/** What an application's client asks for (RFC 7591): what its listing says, and the gateway of its own hosts to come back to. */
export function metadataOf(ctx: Ctx, { instance_id, name, manifest, default_domain, domain }: InstanceRow): Record<string, unknown> {
  const {
    redirect_uris: allowed,
    grant_types = ['authorization_code', 'refresh_token'],
    token_endpoint_auth_method: method = 'client_secret_basic',
    scopes,
  } = manifest.oauth_defaults;
  const own = [...new Set([default_domain, domain])].flatMap(host => callbacksOf(ctx, host));
  return {
    client_name: name,
    // Where the listing names its addresses the others are nobody's to come back to.
    redirect_uris: allowed === undefined ? own : [...new Set([...callbacksOf(ctx, domain), ...own.filter(uri => allowed.includes(uri))])],
    grant_types,
    token_endpoint_auth_method: method,
    ...(scopes === undefined ? {} : { scope: scopes.join(' ') }),
    // By this name it is found again when nobody heard its id.
    software_id: instance_id,
  };
}

/** The OAuth client, by dynamic client registration (APP-005). Its secret is sealed before anything is kept of it (APP-041). */
export function clientStep(ctx: Ctx): ProvisioningStep {
  const { identity } = ctx.services;
  return {
    name: 'client',
    async do(instance, signal) {
      await identity.deleteClientsOf({ params: { software_id: instance.instance_id }, targetEnvId: instance.env_id, signal });
      const client = (await identity.registerClient({ body: metadataOf(ctx, instance), targetEnvId: instance.env_id, signal })) as {
        client_id: string;
        client_id_issued_at: number;
        client_secret?: string;
      };
      const sealed =
        client.client_secret === undefined ? null : ctx.keys.secrets.seal(secretPurpose(instance.instance_id), client.client_secret);
      return { client_id: client.client_id, client_id_issued_at: client.client_id_issued_at, client_secret: sealed };
    },
    async undo(instance, signal) {
      await identity.deleteClientsOf({ params: { software_id: instance.instance_id }, targetEnvId: instance.env_id, signal });
      // An administrator of the environment may have changed it since, and its name for us with it.
      if (instance.client_id !== null)
        await identity.deleteClient({ params: { client_id: instance.client_id }, targetEnvId: instance.env_id, signal });
    },
  };
}
