import { identity } from '@platform/identity/contract';
import { notification } from '@platform/notification/contract';
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
import { Creations } from './tenants/creations.ts';
import { Deletion } from './tenants/deletion.ts';
import { DeletionPreview } from './tenants/deletion-preview.ts';
import { Envs } from './tenants/envs.ts';
import { IdentityFollowUps } from './tenants/identity-follow-ups.ts';
import { Acceptance } from './members/acceptance.ts';
import { Invitations } from './members/invitations.ts';
import { MailQueue } from './members/mail-queue.ts';
import { MemberChanges } from './members/member-changes.ts';
import { Memberships } from './members/memberships.ts';
import { Owners } from './members/owners.ts';
import { Removal } from './members/removal.ts';
import { Orgs } from './tenants/orgs.ts';
import { AccessListing } from './policy/access-listing.ts';
import { PolicyStore } from './policy/policy-store.ts';
import { HostIndex } from './resolver/host-index.ts';
import { HostLookup } from './resolver/host-lookup.ts';
import { Resolver } from './resolver/resolver.ts';
import { ServiceLabels } from './resolver/service-labels.ts';
import { seed } from './seeds.ts';
import { SlugAvailability } from './tenants/slug-availability.ts';
import { Unfinished } from './tenants/unfinished.ts';
import { Verticals } from './verticals.ts';

export default definePlugin(registry, {
  uses: { identity, notification },
  migrations: new URL('../migrations/', import.meta.url),

  async setup(ctx) {
    const access = new Access(ctx);
    const audit = new AuditTrail(ctx);
    const changes = new DomainChanges(ctx);
    const policies = new PolicyStore(ctx);
    const verticals = new Verticals(ctx, changes);
    const enablement = new Enablement(ctx, { access, audit, changes, verticals });
    const followUps = new IdentityFollowUps(ctx);
    const creations = new Creations(ctx, { audit, followUps });
    const tenants = { access, audit, changes, creations, followUps };
    const orgs = new Orgs(ctx, tenants);
    const envs = new Envs(ctx, { ...tenants, policies });
    const deletion = new Deletion(ctx, tenants);
    const preview = new DeletionPreview(ctx, access);
    const unfinished = new Unfinished(ctx, tenants);
    const branding = new Branding(ctx, { access, changes });
    const labels = new ServiceLabels(ctx);
    const resolver = new Resolver(ctx, { hosts: new HostIndex(ctx, new HostLookup(ctx, labels)), enablement });
    const apps = new AppInstances(ctx, { access, audit, changes, verticals, labels });
    const proof = new DomainProof(ctx.config.dnsServers);
    const domains = new CustomDomains(ctx, { apps, audit, proof });
    const recheck = new DomainRecheck(ctx, { apps, audit, proof });
    const bindings = new Bindings(ctx, { access, audit, apps });
    const bootstrap = new Bootstrap(ctx, { access, enablement });
    const listing = new AccessListing(ctx, verticals);
    const mails = new MailQueue(ctx, await ctx.secrets.box(ctx.config.keyEncryptionRef));
    const memberChanges = new MemberChanges(ctx);
    const owners = new Owners(ctx, { access, changes: memberChanges });
    const memberships = new Memberships(ctx, { access, audit, changes: memberChanges, owners });
    const removal = new Removal(ctx, { access, audit, changes: memberChanges, owners });
    const invitations = new Invitations(ctx, { access, audit, changes: memberChanges, mails });
    const acceptance = new Acceptance(ctx, { audit, changes: memberChanges });
    const slugs = new SlugAvailability(ctx);
    return {
      routes: {
        createOrg: request => orgs.create(request),
        listOrgs: request => orgs.list(request),
        getOrg: request => orgs.get(request),
        updateOrg: request => orgs.update(request),
        deleteOrg: request => deletion.org(request),
        archiveOrg: request => orgs.archive(request),
        previewOrgDeletion: request => preview.org(request),
        previewEnvDeletion: request => preview.env(request),
        listUnfinished: request => unfinished.list(request),
        retryUnfinished: request => unfinished.retry(request),
        createEnv: request => envs.create(request),
        listEnvs: request => envs.list(request),
        getEnv: request => envs.get(request),
        updateEnv: request => envs.update(request),
        deleteEnv: request => deletion.env(request),
        archiveEnv: request => envs.archive(request),
        slugAvailable: request => slugs.check(request),
        listServices: request => enablement.list(request),
        updateServices: request => enablement.update(request),
        ...applicationHandlers({ apps, domains, bindings }),
        listMemberships: request => memberships.list(request),
        removeMembership: request => removal.remove(request),
        removeMembershipOf: ({ query, ...request }) => removal.remove({ ...request, query: {}, params: { ...request.params, user_id: query.user_id } }),
        changeMembership: request => memberships.change(request),
        listInvitations: request => invitations.list(request),
        createInvitation: request => invitations.create(request),
        acceptInvitation: request => acceptance.accept(request),
        getInvitation: request => invitations.get(request),
        deleteInvitation: request => invitations.revoke({ ...request, body: undefined }),
        revokeInvitation: request => invitations.revoke(request),
        mailQueue: () => mails.state(),
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
        whoCan: request => listing.whoCan(request),
        whatCan: request => listing.whatCan(request),
        policySnapshot: request => policies.snapshot(request),
        policyUpsertSet: request => policies.upsertSet(request),
        policyUpsertRelation: request => policies.upsertRelation(request),
        policyUpsertAttribute: request => policies.upsertAttribute(request),
        policyRemove: request => policies.remove(request),
      },
      jobs: {
        pushMail: signal => mails.push(signal),
        settleMembers: async signal => {
          await acceptance.settle(signal);
          await removal.settle(signal);
        },
        forgetAudit: signal => audit.forget(ctx.config.auditRetentionDays, signal),
        recoverCreations: signal => creations.recover(signal),
        followUp: signal => followUps.work(signal),
        recheckDomains: signal => recheck.run(signal),
      },
      ready: () => seed(ctx, policies),
    };
  },
});
