import { DomainProof } from '../apps/domain-proof.ts';
import { DomainChanges } from '../domain-changes.ts';
import { Enablement } from '../enablement.ts';
import { PolicyStore } from '../policy/policy-store.ts';
import { ServiceLabels } from '../resolver/service-labels.ts';
import { Access } from '../tenants/access.ts';
import { Verticals } from '../verticals.ts';
import type { Ctx } from '../context.ts';
import { auditParts } from './audit-parts.ts';

/** What tenants, members and applications all need: who may, what is recorded, what is told. */
export async function groundParts(ctx: Ctx) {
  const access = new Access(ctx);
  const changes = new DomainChanges(ctx);
  const verticals = new Verticals(ctx, changes);
  const audit = await auditParts(ctx, { access });
  return {
    ...audit,
    access,
    changes,
    enablement: new Enablement(ctx, { access, audit: audit.audit, changes, verticals }),
    labels: new ServiceLabels(ctx),
    policies: new PolicyStore(ctx, audit),
    proof: new DomainProof(ctx.config.dnsServers),
    verticals,
  };
}
export type GroundParts = Awaited<ReturnType<typeof groundParts>>;
