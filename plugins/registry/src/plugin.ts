import { identity } from '@platform/identity/contract';
import { definePlugin, reply } from '@platform/sdk';
import { registry } from '../contract/index.ts';
import { Access } from './tenants/access.ts';
import { applicationHandlers } from './apps/application-handlers.ts';
import { AppInstances } from './apps/app-instances.ts';
import { Bindings } from './apps/bindings.ts';
import { CustomDomains } from './apps/custom-domains.ts';
import { DomainProof } from './apps/domain-proof.ts';
import { DomainRecheck } from './apps/domain-recheck.ts';
import { AuditTrail } from './audit/audit-trail.ts';
import { Bootstrap } from './bootstrap.ts';
import { Branding } from './branding.ts';
import { DomainChanges } from './domain-changes.ts';
import { Enablement } from './enablement.ts';
import { Envs } from './tenants/envs.ts';
import { Memberships } from './members/memberships.ts';
import { Orgs } from './tenants/orgs.ts';
import { PolicyStore } from './policy/policy-store.ts';
import { HostIndex } from './resolver/host-index.ts';
import { HostLookup } from './resolver/host-lookup.ts';
import { Resolver } from './resolver/resolver.ts';
import { ServiceLabels } from './resolver/service-labels.ts';
import { seed } from './seeds.ts';
import { SlugAvailability } from './tenants/slug-availability.ts';
import { Verticals } from './verticals.ts';

export default definePlugin(registry, {
  uses: { identity },
  migrations: new URL('../migrations/', import.meta.url),

  setup(ctx) {
    const access = new Access(ctx);
    const audit = new AuditTrail(ctx);
    const changes = new DomainChanges(ctx);
    const policies = new PolicyStore(ctx);
    const verticals = new Verticals(ctx, changes);
    const enablement = new Enablement(ctx, { access, audit, changes, verticals });
    const orgs = new Orgs(ctx, { access, audit, changes });
    const envs = new Envs(ctx, { access, audit, changes, policies });
    const branding = new Branding(ctx, { access, changes });
    const labels = new ServiceLabels(ctx);
    const resolver = new Resolver(ctx, { hosts: new HostIndex(ctx, new HostLookup(ctx, labels)), enablement });
    const apps = new AppInstances(ctx, { access, audit, changes, verticals, labels });
    const proof = new DomainProof(ctx.config.dnsServers);
    const domains = new CustomDomains(ctx, { apps, audit, proof });
    const recheck = new DomainRecheck(ctx, { apps, audit, proof });
    const bindings = new Bindings(ctx, { access, audit, apps });
    const bootstrap = new Bootstrap(ctx, { access, enablement });
    const memberships = new Memberships(ctx, access);
    const slugs = new SlugAvailability(ctx);
    return {
      routes: {
        createOrg: request => orgs.create(request),
        listOrgs: request => orgs.list(request),
        getOrg: request => orgs.get(request),
        updateOrg: request => orgs.update(request),
        deleteOrg: request => orgs.delete(request),
        archiveOrg: request => orgs.archive(request),
        createEnv: request => envs.create(request),
        listEnvs: request => envs.list(request),
        getEnv: request => envs.get(request),
        updateEnv: request => envs.update(request),
        deleteEnv: request => envs.delete(request),
        archiveEnv: request => envs.archive(request),
        slugAvailable: request => slugs.check(request),
        listServices: request => enablement.list(request),
        updateServices: request => enablement.update(request),
        ...applicationHandlers({ apps, domains, bindings }),
        listMemberships: request => memberships.list(request),
        orgBranding: request => branding.ofOrg(request),
        putOrgBranding: request => branding.replaceOrg(request),
        envBranding: request => branding.ofEnv(request),
        putEnvBranding: request => branding.replaceEnv(request),
        mergedBranding: request => branding.merged(request),
        resolveHostname: request => resolver.hostname(request),
        appInstanceScopes: request => resolver.appScopes(request),
        appInstanceAuthMode: request => resolver.appAuthMode(request),
        appCustomDomain: request => resolver.appDomain(request),
        authDomain: request => resolver.authDomain(request),
        tenant: request => resolver.tenant(request),
        bootstrap: request => bootstrap.read(request),
        scopeCatalog: async () => {
          const catalog = await verticals.scopes();
          return reply(catalog, { headers: { etag: `"${catalog.version}"`, 'cache-control': 'public, max-age=60' } });
        },
        listVerticals: request => verticals.list(request),
        registerVertical: request => verticals.register(request),
        listAudit: request => audit.list(request),
        recordAudit: request => audit.record(request),
        policySnapshot: request => policies.snapshot(request),
        policyUpsertSet: request => policies.upsertSet(request),
        policyUpsertRelation: request => policies.upsertRelation(request),
        policyUpsertAttribute: request => policies.upsertAttribute(request),
        policyRemove: request => policies.remove(request),
      },
      jobs: { forgetAudit: signal => audit.forget(ctx.config.auditRetentionDays, signal), recheckDomains: signal => recheck.run(signal) },
      ready: () => seed(ctx, policies),
    };
  },
});
