import { identity } from '@platform/identity/contract';
import { notification } from '@platform/notification/contract';
import { definePlugin } from '@platform/sdk';
import { registry } from '../contract/index.ts';
import { applicationHandlers } from './apps/application-handlers.ts';
import { auditHandlers } from './audit/audit-handlers.ts';
import { memberHandlers } from './members/member-handlers.ts';
import { seed } from './seeds.ts';
import { servicesOf } from './services.ts';
import { tenantHandlers } from './tenants/tenant-handlers.ts';

export default definePlugin(registry, {
  uses: { identity, notification },
  migrations: new URL('../migrations/', import.meta.url),

  async setup(ctx) {
    const of = await servicesOf(ctx);
    return {
      routes: {
        ...tenantHandlers(of),
        listServices: request => of.enablement.list(request),
        updateServices: request => of.enablement.update(request),
        ...applicationHandlers(of),
        ...memberHandlers(of),
        orgBranding: request => of.branding.ofOrg(request),
        putOrgBranding: request => of.branding.replaceOrg(request),
        envBranding: request => of.branding.ofEnv(request),
        putEnvBranding: request => of.branding.replaceEnv(request),
        mergedBranding: request => of.branding.merged(request),
        resolveHostname: request => of.resolver.hostname(request),
        appInstanceScopes: request => of.resolver.appScopes(request),
        appInstanceAuthMode: request => of.resolver.appAuthMode(request),
        appCustomDomain: request => of.resolver.appDomain(request),
        authDomain: request => of.resolver.authDomain(request),
        tenant: request => of.resolver.tenant(request),
        bootstrap: request => of.bootstrap.read(request),
        scopeCatalog: request => of.verticals.catalog(request),
        listVerticals: request => of.verticals.list(request),
        registerVertical: request => of.verticals.register(request),
        listLives: () => of.lives.list(),
        findVertical: request => of.lives.found(request),
        takeOutVertical: request => of.lives.takeOut(request),
        bringBackVertical: request => of.lives.bringBack(request),
        ...auditHandlers(of),
        whoCan: request => of.listing.whoCan(request),
        whatCan: request => of.listing.whatCan(request),
        policySnapshot: request => of.policies.snapshot(request),
        policyUpsertSet: request => of.policies.upsertSet(request),
        policyUpsertRelation: request => of.policies.upsertRelation(request),
        policyUpsertAttribute: request => of.policies.upsertAttribute(request),
        policyPutAttributes: request => of.policies.putAttributes(request),
        policyRemove: request => of.policies.remove(request),
      },
      tasks: {
        inviteByMail: (mail, run) => of.mail.send(mail, run),
        followTenant: (tenant, run) => of.followUps.follow(tenant, run),
        settleAcceptance: (begun, run) => of.acceptance.settle(begun, run),
        settleRemoval: (begun, run) => of.removal.settle(begun, run),
        purgeEnvironment: (payload, run) => of.purges.purge(payload, run),
        seeOut: ({ service }) => of.departures.seeOut(service),
      },
      jobs: {
        sealAnew: signal => ctx.reseal('mail', [], signal),
        signAudit: signal => of.auditAnchors.sign(signal),
        watchAudit: signal => of.auditWatch.look(signal),
        forgetAudit: signal => of.auditRetention.forget(ctx.config.auditRetentionDays, signal),
        recoverCreations: signal => of.creations.recover(signal),
        recheckDomains: signal => of.recheck.run(signal),
      },
      ready: async signal => {
        await seed(ctx, of.policies);
        // What a stopped platform left unsigned is signed before anybody asks whether it is, and what was put back meanwhile is named.
        await of.auditAnchors.sign(signal);
        await of.auditWatch.look(signal);
      },
    };
  },
});
