import { join } from 'node:path';
import type { Ctx } from './context.ts';
import { AppInstances } from './apps/app-instances.ts';
import { Bindings } from './apps/bindings.ts';
import { CustomDomains } from './apps/custom-domains.ts';
import { DomainProof } from './apps/domain-proof.ts';
import { DomainRecheck } from './apps/domain-recheck.ts';
import { AuditAnchors } from './audit/proof/audit-anchors.ts';
import { AuditChain } from './audit/proof/audit-chain.ts';
import { AuditKeys } from './audit/proof/audit-keys.ts';
import { AuditListing } from './audit/audit-listing.ts';
import { AuditProofs } from './audit/proof/audit-proofs.ts';
import { AuditRetention } from './audit/audit-retention.ts';
import { AuditTrail } from './audit/audit-trail.ts';
import { AuditVerification } from './audit/proof/audit-verification.ts';
import { AuditWatch } from './audit/proof/audit-watch.ts';
import { AuditWitness } from './audit/proof/audit-witness.ts';
import { Bootstrap } from './bootstrap.ts';
import { Branding } from './branding.ts';
import { DomainChanges } from './domain-changes.ts';
import { Enablement } from './enablement.ts';
import { Acceptance } from './members/acceptance.ts';
import { Invitations } from './members/invitations.ts';
import { InvitationMail } from './members/invitation-mail.ts';
import { MemberChanges } from './members/member-changes.ts';
import { Memberships } from './members/memberships.ts';
import { Owners } from './members/owners.ts';
import { Removal } from './members/removal.ts';
import { ShownInvitation } from './members/shown-invitation.ts';
import { AccessListing } from './policy/access-listing.ts';
import { PolicyStore } from './policy/policy-store.ts';
import { HostIndex } from './resolver/host-index.ts';
import { HostLookup } from './resolver/host-lookup.ts';
import { Resolver } from './resolver/resolver.ts';
import { ServiceLabels } from './resolver/service-labels.ts';
import { Access } from './tenants/access.ts';
import { Creations } from './tenants/endings/creations.ts';
import { DeletionPreview } from './tenants/endings/deletion-preview.ts';
import { Deletion } from './tenants/endings/deletion.ts';
import { DomainProofs } from './tenants/domain-proofs.ts';
import { EnvironmentStates } from './tenants/environment-state.ts';
import { EnvironmentPurges } from './tenants/endings/environment-purges.ts';
import { Envs } from './tenants/envs.ts';
import { IdentityFollowUps } from './tenants/endings/identity-follow-ups.ts';
import { Orgs } from './tenants/orgs.ts';
import { SlugAvailability } from './tenants/slug-availability.ts';
import { Unfinished } from './tenants/endings/unfinished.ts';
import { Verticals } from './verticals.ts';

/**
 * A witness that is made beside a signed trail is of a new machine, or in the place of one that somebody took away: nobody but the operator
 * knows.
 */
async function sayWhatWitnessMissed(ctx: Ctx, witness: AuditWitness): Promise<void> {
  if (!witness.isNew) return;
  const [signed] = await ctx.db.sql<object[]>`select 1 from audit_anchors limit 1`;
  if (signed)
    ctx.log.error(
      { alert: 'sys.audit.witness_begun', file: join(ctx.platform.dataDir, 'audit', 'witness.db') },
      'the witness of the audit trail was made anew: it cannot tell what was put back before; restore its file unless this machine is new',
    );
}

/** Everything of this service, put together by hand (house 20). */
export async function servicesOf(ctx: Ctx) {
  const access = new Access(ctx);
  const auditKeys = await AuditKeys.open(ctx);
  const witness = ctx.own(AuditWitness.open(join(ctx.platform.dataDir, 'audit'), ctx.clock.now()));
  await sayWhatWitnessMissed(ctx, witness);
  const audit = new AuditTrail(ctx, new AuditChain(ctx));
  const auditListing = new AuditListing(ctx, access);
  const auditVerification = new AuditVerification(ctx, { keys: auditKeys, witness });
  const auditAnchors = new AuditAnchors(ctx, auditKeys);
  const auditRetention = new AuditRetention(ctx, auditKeys);
  const auditWatch = new AuditWatch(ctx, { keys: auditKeys, witness });
  const auditProofs = new AuditProofs(ctx, { keys: auditKeys, witness, audit });
  const changes = new DomainChanges(ctx);
  const policies = new PolicyStore(ctx);
  const verticals = new Verticals(ctx, changes);
  const enablement = new Enablement(ctx, { access, audit, changes, verticals });
  const followUps = new IdentityFollowUps(ctx);
  const creations = new Creations(ctx, { audit, followUps });
  const states = new EnvironmentStates(ctx);
  const tenants = { access, audit, changes, creations, followUps, states };
  const orgs = new Orgs(ctx, tenants);
  const envs = new Envs(ctx, { ...tenants, policies });
  const purges = new EnvironmentPurges(ctx, verticals);
  const deletion = new Deletion(ctx, { ...tenants, purges });
  const preview = new DeletionPreview(ctx, access, purges);
  const unfinished = new Unfinished(ctx, tenants);
  const branding = new Branding(ctx, { access, changes });
  const labels = new ServiceLabels(ctx);
  const resolver = new Resolver(ctx, { hosts: new HostIndex(ctx, new HostLookup(ctx, labels)), enablement, access });
  const apps = new AppInstances(ctx, { access, audit, changes, verticals, labels });
  const proof = new DomainProof(ctx.config.dnsServers);
  const domains = new CustomDomains(ctx, { apps, audit, proof });
  const orgDomains = new DomainProofs(ctx, { access, audit, changes, proof });
  const recheck = new DomainRecheck(ctx, { apps, audit, proof });
  const bindings = new Bindings(ctx, { access, audit, apps });
  const bootstrap = new Bootstrap(ctx, { access, enablement });
  const listing = new AccessListing(ctx, verticals);
  const mail = new InvitationMail(ctx);
  const memberChanges = new MemberChanges(ctx);
  const owners = new Owners(ctx, { access, changes: memberChanges });
  const members = { access, audit, changes: memberChanges, owners };
  const memberships = new Memberships(ctx, members);
  const removal = new Removal(ctx, members);
  const invitations = new Invitations(ctx, { ...members, mail });
  const acceptance = new Acceptance(ctx, { audit, changes: memberChanges });
  const shown = new ShownInvitation(ctx);
  const slugs = new SlugAvailability(ctx, access);
  return {
    acceptance,
    apps,
    audit,
    auditAnchors,
    auditListing,
    auditProofs,
    auditRetention,
    auditVerification,
    auditWatch,
    bindings,
    bootstrap,
    branding,
    creations,
    deletion,
    domains,
    enablement,
    envs,
    followUps,
    invitations,
    listing,
    mail,
    memberships,
    orgDomains,
    orgs,
    policies,
    purges,
    preview,
    recheck,
    removal,
    resolver,
    shown,
    slugs,
    states,
    unfinished,
    verticals,
  };
}
