import { brokenConstraint, type Caller, nameOf, reply, type Reply, SYSTEM } from '@platform/sdk';
import type { DomainBinding } from '../../contract/schema/domain.ts';
import type { Installed, Setup, ShownInstall } from '../../contract/schema/instance.ts';
import type { Listing } from '../../contract/schema/listing.ts';
import type { Ctx, Of } from '../context.ts';
import type { DomainBindings } from '../domains/domain-bindings.ts';
import type { Releases } from '../listings/releases.ts';
import { groupsOf, rolesOf } from '../provisioning/access-names.ts';
import { callbacksOf, type Tenant, type TenantHosts } from '../provisioning/tenant-hosts.ts';
import { instanceOf, type InstallManifest, type InstanceRow, secretPurpose, snippetOf } from './instance-row.ts';
import type { Instances } from './instances.ts';
import type { Installs } from './installs.ts';
import type { Onboarding } from './onboarding.ts';

interface Parts {
  readonly bindings: DomainBindings;
  readonly hosts: TenantHosts;
  readonly installs: Installs;
  readonly instances: Instances;
  readonly onboarding: Onboarding;
  readonly releases: Releases;
}
interface By {
  readonly caller: Caller;
  readonly env: string;
}
const SLUG = /^[a-z][a-z0-9-]{1,38}[a-z0-9]$/;
/** G-K-03; a service's own name is reserved too. */
const RESERVED = ['sys', 'ops', 'www', 'api', 'admin', 'bff'];

/** Everything that is asked before an install begins, and how it is answered (G-APP-03, APP-051). */
export class Setups {
  readonly #ctx: Ctx;
  readonly #parts: Parts;

  constructor(ctx: Ctx, parts: Parts) {
    [this.#ctx, this.#parts] = [ctx, parts];
  }

  async setup(body: Setup, { caller, env }: By): Promise<Reply<Installed>> {
    const { hosts, installs, onboarding, releases } = this.#parts;
    if (env === SYSTEM.envId)
      throw this.#ctx.problem('tenant_not_installable', {
        detail: 'Applications are installed in environments of organizations, not in the platform’s own.',
      });
    this.#requireSlug(body.instance.slug);
    const listing = await releases.find(caller, env, body);
    const tenant = await hosts.of(env);
    const defaultDomain = hosts.hostname(tenant, body.instance.slug);
    const domain = body.custom_domain ?? defaultDomain;
    this.requireCallback(listing.oauth_defaults.redirect_uris, domain);
    await hosts.requireAuthUrl(tenant, body.auth_url);
    const { row, binding } = await this.#begin({ body, listing, tenant, caller, domain, defaultDomain });
    if (row.status === 'onboarding') {
      const waiting = await onboarding.begin(row);
      return reply(
        { instance: instanceOf(waiting), status: waiting.status, oauth_client: null, sdk_snippet: null, domain_binding: binding },
        { status: 202, headers: { location: this.#location(row) } },
      );
    }
    const installed = await installs.complete(row.instance_id, caller);
    return reply(
      { ...this.#shown(installed), domain_binding: binding },
      { status: 201, headers: { location: this.#location(row), 'cache-control': 'no-store' } },
    );
  }

  /** The same for the form of a page. */
  async install({ body, caller, env }: Of<'install'>): Promise<Reply<ShownInstall>> {
    const { listing_id, name, slug, custom_domain, ...wish } = body;
    const { value, ...answer } = await this.setup(
      { listing_id, instance: { name, slug }, ...wish, ...(custom_domain ? { custom_domain } : {}) },
      { caller, env },
    );
    const { instance, oauth_client, sdk_snippet } = value;
    const secret = oauth_client?.client_secret;
    return reply(
      {
        ...(secret === undefined ? {} : { client_secret: secret }),
        client_id: oauth_client?.client_id ?? null,
        host: instance.domain,
        status: instance.status,
        sdk_snippet,
      },
      { ...answer },
    );
  }

  /** Before anything is made: people must be able to come back (APP-062). */
  requireCallback(allowed: readonly string[] | undefined, hostname: string): void {
    if (allowed === undefined || callbacksOf(this.#ctx, hostname).some(uri => allowed.includes(uri))) return;
    throw this.#ctx.problem('redirect_uri_not_allowed', {
      detail: `The listing's oauth_defaults.redirect_uris do not hold https://bff.${hostname}/auth/callback. Its developer adds it, or another host is used.`,
    });
  }

  #shown(row: InstanceRow): Omit<Installed, 'domain_binding'> {
    const secret = row.client_secret === null ? undefined : this.#ctx.keys.secrets.open(secretPurpose(row.instance_id), row.client_secret);
    const oauth_client = {
      client_id: row.client_id as string,
      client_id_issued_at: Number(row.client_id_issued_at),
      ...(secret === undefined ? {} : { client_secret: secret }),
    };
    return { instance: instanceOf(row), oauth_client, sdk_snippet: snippetOf(row) };
  }

  /** The record, its event and the task that settles what a crash leaves, in one transaction. */
  async #begin({
    body,
    listing,
    tenant,
    caller,
    domain,
    defaultDomain,
  }: {
    body: Setup;
    listing: Listing;
    tenant: Tenant;
    caller: Caller;
    domain: string;
    defaultDomain: string;
  }) {
    const { instances, bindings } = this.#parts;
    const { clock, db, platform } = this.#ctx;
    const { listing_id, app_slug, channel, version, roles, default_signup_role, oauth_defaults, onboarding } = listing;
    const { name, slug } = body.instance;
    const manifest: InstallManifest = {
      name: listing.name,
      roles,
      default_signup_role,
      oauth_defaults,
      onboarding,
      listing_env_id: listing.env_id,
    };
    const now = clock.now();
    const instance_id = platform.newId();
    const named = { slug, manifest };
    const columns = {
      instance_id,
      listing_id,
      app_slug,
      channel,
      version,
      org_id: tenant.org_id,
      env_id: tenant.env_id,
      name,
      slug,
      default_domain: defaultDomain,
      domain,
      auth_url: body.auth_url,
      public_signup: body.public_signup,
      status: onboarding.length > 0 ? 'onboarding' : 'provisioning',
      leased_until: instances.leaseEnd(),
      created_by: nameOf(caller),
      created_at: now,
      updated_at: now,
    };
    try {
      return await db.tx(async tx => {
        // A listing is not deleted while an install of it begins, and none begins while it is.
        const [there] = await tx.sql<object[]>`select 1 from listings where listing_id = ${listing_id} for share`;
        if (!there) throw this.#ctx.problem('listing_not_found', { detail: 'The listing was deleted a moment ago.' });
        const json = { roles: tx.sql.json(rolesOf(named)), groups: tx.sql.json(groupsOf(named)), manifest: tx.sql.json(manifest) };
        const [row] = await tx.sql<[InstanceRow]>`insert into instances ${tx.sql.row({ ...columns, ...json })} returning *`;
        await instances.tell(tx, row, 'created', caller);
        await tx.enqueue('settle', { instance_id }, { key: instance_id, at: instances.leaseEnd(), envId: tenant.env_id });
        const binding: DomainBinding | null =
          body.custom_domain === undefined ? null : await bindings.ask(tx, row, body.custom_domain, caller);
        return { row, binding };
      });
    } catch (cause) {
      if (brokenConstraint(cause) === 'instances_slug')
        throw this.#ctx.problem('instance_slug_taken', {
          detail: `"${slug}" is in use in this environment, or is still being cleaned up. Choose another slug.`,
          extra: { errors: [{ pointer: '/instance/slug', code: 'taken', message: 'is in use' }] },
          cause,
        });
      throw cause;
    }
  }

  #requireSlug(slug: string): void {
    const fault = (code: 'slug_invalid' | 'slug_reserved', detail: string) =>
      this.#ctx.problem(code, {
        detail,
        extra: { errors: [{ pointer: '/instance/slug', code: code.slice(5), message: `is ${code.slice(5)}` }] },
      });
    if (!SLUG.test(slug)) throw fault('slug_invalid', 'A slug has 3 to 40 characters of a-z, 0-9 and hyphens, a letter first.');
    if (RESERVED.includes(slug) || this.#ctx.catalog.manifests().some(({ id, vertical }) => vertical === 'platform' && id === slug))
      throw fault('slug_reserved', `"${slug}" is the platform's own.`);
  }

  #location({ instance_id, env_id }: InstanceRow): string {
    return `/v1/app/admin/instances/${instance_id}?target_env_id=${env_id}`;
  }
}
