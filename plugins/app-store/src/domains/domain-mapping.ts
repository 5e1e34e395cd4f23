import { isDeepStrictEqual } from 'node:util';
import { isProblem } from '@platform/sdk';
import { type Ctx, isRefusal } from '../context.ts';
import type { InstanceRow } from '../instances/instance-row.ts';
import type { Instances } from '../instances/instances.ts';
import { callbacksOf } from '../provisioning/tenant-hosts.ts';
import type { BindingRow } from './binding-row.ts';
import { txtName } from './domain-challenge.ts';

/** What the registry refuses of a custom domain that is gone already. */
const GONE = ['custom_domain_not_found', 'app_instance_not_found', 'env_not_found', 'record_archived'] as const;

/** What an update of a client says again, so that it stays. */
const KEPT = [
  'grant_types',
  'token_endpoint_auth_method',
  'application_type',
  'scope',
  'first_party',
  'id_token_signed_response_alg',
] as const;

/** A proven domain at the registry, which routes it once it leads here, and at the client, whose people come back to it. */
export class DomainMapping {
  readonly #ctx: Ctx;
  readonly #instances: Instances;

  constructor(ctx: Ctx, instances: Instances) {
    [this.#ctx, this.#instances] = [ctx, instances];
  }

  /** Maps it, or writes down why it is not mapped yet: the next look tries again. */
  async activate(instance: InstanceRow, binding: BindingRow): Promise<void> {
    const { env_id, app_instance_id } = instance;
    const { fqdn, method } = binding;
    if (app_instance_id === null) return;
    const params = { env_id, app_instance_id };
    const challenge =
      method === 'cname'
        ? ({ fqdn, type: 'CNAME', name: `${binding.cname_token}.${fqdn}`, value: binding.cname_target } as const)
        : ({ fqdn, type: 'TXT', name: txtName(fqdn), value: binding.txt_record } as const);
    try {
      await this.#ctx.services.registry.challengeCustomDomain({ params, body: challenge });
      await this.#ctx.services.registry.verifyCustomDomain({ params });
      await this.#allowReturn(instance, fqdn);
    } catch (cause) {
      if (!isProblem(cause)) throw cause;
      if (cause.status >= 500)
        throw this.#ctx.problem('neighbour_unavailable', { detail: 'The domain is proven, and is mapped with the next look.', cause });
      const reason =
        cause.code === 'domain_not_verified'
          ? `Let ${fqdn} lead to ${instance.default_domain} by a CNAME record.`
          : (cause.detail ?? cause.title);
      await this.#ctx.db.sql`update domain_bindings set last_error = ${reason}, updated_at = ${this.#ctx.clock.now()}
          where binding_id = ${binding.binding_id} and status = 'verified'`;
      return;
    }
    await this.#ctx.db.tx(async tx => {
      const now = this.#ctx.clock.now();
      const rows = await tx.sql<
        object[]
      >`update domain_bindings set status = 'active', last_error = null, updated_at = ${now} where binding_id = ${binding.binding_id}
        and status = 'verified' returning 1`;
      if (rows.length > 0)
        await this.#instances.change(tx, instance, { from: ['active', 'suspended'], set: { domain: fqdn }, told: 'updated' });
    });
  }

  /** Nobody comes back to a domain that was given up: it may be somebody else's tomorrow. */
  async remove(instance: InstanceRow, fqdn: string): Promise<void> {
    const { env_id, app_instance_id } = instance;
    try {
      if (app_instance_id !== null) await this.#ctx.services.registry.deleteCustomDomain({ params: { env_id, app_instance_id } });
    } catch (cause) {
      if (!isRefusal(cause, ...GONE))
        throw this.#ctx.problem('neighbour_unavailable', { detail: 'The registry did not take the domain back. Try again.', cause });
    }
    try {
      await this.#forbidReturn(instance, fqdn);
    } catch (cause) {
      if (!isRefusal(cause, 'client_not_found', 'realm_not_found'))
        throw this.#ctx.problem('neighbour_unavailable', {
          detail: 'The identity service did not take the domain back. Try again.',
          cause,
        });
    }
  }

  /** People who signed in come back to the new host as well. */
  #allowReturn(instance: InstanceRow, fqdn: string): Promise<void> {
    return this.#changeReturns(instance, uris => [...new Set([...uris, ...callbacksOf(this.#ctx, fqdn)])]);
  }

  /** A client keeps at least one address: that of its default host where the domain was all it had. */
  #forbidReturn(instance: InstanceRow, fqdn: string): Promise<void> {
    const own = callbacksOf(this.#ctx, fqdn);
    return this.#changeReturns(instance, uris => {
      const left = uris.filter(uri => !own.includes(uri));
      return left.length > 0 ? left : callbacksOf(this.#ctx, instance.default_domain);
    });
  }

  async #changeReturns({ env_id, client_id }: InstanceRow, change: (uris: readonly string[]) => string[]): Promise<void> {
    if (client_id === null) return;
    const { identity } = this.#ctx.services;
    const client = await identity.getClient({ params: { client_id }, targetEnvId: env_id });
    const redirect_uris = change(client.redirect_uris);
    if (isDeepStrictEqual(redirect_uris, client.redirect_uris)) return;
    const { client_name, logo_uri } = client;
    await identity.updateClient({
      params: { client_id },
      targetEnvId: env_id,
      body: {
        ...Object.fromEntries(KEPT.map(member => [member, client[member]])),
        client_name,
        ...(logo_uri === null ? {} : { logo_uri }),
        redirect_uris,
      },
    });
  }
}
