import { identity } from '@platform/identity/contract';
import { definePlugin, reply } from '@platform/sdk';
import { registry } from '../contract/index.ts';
import { Access } from './tenants/access.ts';
import { AuditAnchors } from './audit/audit-anchors.ts';
import { AuditChain } from './audit/audit-chain.ts';
import { AuditKey } from './audit/audit-key.ts';
import { AuditListing } from './audit/audit-listing.ts';
import { AuditRetention } from './audit/audit-retention.ts';
import { AuditTrail } from './audit/audit-trail.ts';
import { AuditVerification } from './audit/audit-verification.ts';
import { Bootstrap } from './bootstrap.ts';
import { Branding } from './branding.ts';
import { DomainChanges } from './domain-changes.ts';
import { Enablement } from './enablement.ts';
import { Envs } from './tenants/envs.ts';
import { Memberships } from './members/memberships.ts';
import { Orgs } from './tenants/orgs.ts';
import { PolicyStore } from './policy/policy-store.ts';
import { Resolver } from './resolver/resolver.ts';
import { seed } from './seeds.ts';
import { SlugAvailability } from './tenants/slug-availability.ts';
import { Verticals } from './verticals.ts';

export default definePlugin(registry, {
  uses: { identity },
  migrations: new URL('../migrations/', import.meta.url),

  async setup(ctx) {
    const access = new Access(ctx);
    const auditKey = await AuditKey.open(ctx);
    const audit = new AuditTrail(ctx, new AuditChain(ctx));
    const auditListing = new AuditListing(ctx);
    const auditVerification = new AuditVerification(ctx, auditKey);
    const auditAnchors = new AuditAnchors(ctx, auditKey);
    const auditRetention = new AuditRetention(ctx, auditKey);
    const changes = new DomainChanges(ctx);
    const policies = new PolicyStore(ctx);
    const verticals = new Verticals(ctx);
    const enablement = new Enablement(ctx, { access, audit, changes, verticals });
    const orgs = new Orgs(ctx, { access, audit, changes });
    const envs = new Envs(ctx, { access, audit, changes, policies });
    const branding = new Branding(ctx, { access, changes });
    const resolver = new Resolver(ctx, enablement);
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
        listMemberships: request => memberships.list(request),
        orgBranding: request => branding.ofOrg(request),
        putOrgBranding: request => branding.replaceOrg(request),
        envBranding: request => branding.ofEnv(request),
        putEnvBranding: request => branding.replaceEnv(request),
        mergedBranding: request => branding.merged(request),
        resolveHostname: request => resolver.hostname(request),
        authDomain: request => resolver.authDomain(request),
        tenant: request => resolver.tenant(request),
        bootstrap: request => bootstrap.read(request),
        scopeCatalog: async () => {
          const catalog = await verticals.scopes();
          return reply(catalog, { headers: { etag: `"${catalog.version}"`, 'cache-control': 'public, max-age=60' } });
        },
        listVerticals: request => verticals.list(request),
        registerVertical: request => verticals.register(request),
        listAudit: request => auditListing.list(request),
        recordAudit: request => audit.record(request),
        recordAudits: request => audit.recordMany(request),
        verifyAudit: request => auditVerification.step(request),
        listAuditChains: request => auditVerification.chains(request),
        auditKey: () => auditVerification.key(),
        policySnapshot: request => policies.snapshot(request),
        policyUpsertSet: request => policies.upsertSet(request),
        policyUpsertRelation: request => policies.upsertRelation(request),
        policyUpsertAttribute: request => policies.upsertAttribute(request),
        policyRemove: request => policies.remove(request),
      },
      jobs: {
        signAudit: signal => auditAnchors.sign(signal),
        forgetAudit: signal => auditRetention.forget(ctx.config.auditRetentionDays, signal),
      },
      ready: async signal => {
        await seed(ctx, policies);
        // What a stopped platform left unsigned is signed before anybody asks whether it is.
        await auditAnchors.sign(signal);
      },
    };
  },
});
