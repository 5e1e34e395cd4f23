import type { instanceRoutes } from '../../contract/routes/instance-routes.ts';
import type { Handlers } from '../context.ts';
import type { DomainBindings } from '../domains/domain-bindings.ts';
import type { Releases } from '../listings/releases.ts';
import type { TenantHosts } from '../provisioning/tenant-hosts.ts';
import type { ClientSecrets } from './client-secrets.ts';
import type { InstanceRow } from './instance-row.ts';
import type { Instances } from './instances.ts';
import type { Setups } from './setups.ts';
import type { Uninstalls } from './uninstalls.ts';

interface Parts {
  readonly bindings: DomainBindings;
  readonly hosts: TenantHosts;
  readonly instances: Instances;
  readonly releases: Releases;
  readonly secrets: ClientSecrets;
  readonly setups: Setups;
  readonly uninstalls: Uninstalls;
}

/** Routes of installs and their domains to who answers them. */
export function instanceHandlers(parts: Parts): Handlers<keyof typeof instanceRoutes> {
  const { bindings, hosts, instances, releases, secrets, setups, uninstalls } = parts;
  const allowed = ({ manifest }: InstanceRow, fqdn: string) => setups.requireCallback(manifest.oauth_defaults.redirect_uris, fqdn);
  return {
    setup: ({ body, caller, env }) => setups.setup(body, { caller, env }),
    install: request => setups.install(request),
    listInstances: ({ env, query: { envId: _env, ...query } }) => instances.list(env, query),
    getInstance: ({ env, params }) => instances.get(env, params.instance_id),
    deleteInstance: request => uninstalls.uninstall(request),
    rotateSecret: request => secrets.rotate(request),
    bindDomain: request => bindings.bind(request, allowed),
    useDomain: ({ params, env, body, caller }) => bindings.bind({ params, env, body, caller }, allowed),
    getDomain: ({ env, params }) => bindings.get(env, params.instance_id),
    unbindDomain: request => bindings.unbind(request),
    instanceAccess: ({ env, params }) => instances.access(env, params.instance_id),
    checkDomain: request => bindings.check(request),
    instanceDomains: ({ env, params }) => bindings.of(env, params.instance_id),
    installableListings: ({ caller, env }) => releases.installable(caller, env),
    authUrls: async ({ env }) => ({ items: (await hosts.authUrls(await hosts.of(env))).map(value => ({ value, label: value })) }),
  };
}
