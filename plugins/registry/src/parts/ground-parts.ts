import { NameServers } from '@platform/sdk';
import { DomainProof } from '../apps/domain-proof.ts';
import { DomainChanges } from '../domain-changes.ts';
import { Enablement } from '../verticals/enablement.ts';
import { PolicyStore } from '../policy/policy-store.ts';
import { ServiceLabels } from '../resolver/service-labels.ts';
import { Access } from '../tenants/access.ts';
import { Departures } from '../verticals/departures.ts';
import { VerticalLives } from '../verticals/vertical-lives.ts';
import { Verticals } from '../verticals/verticals.ts';
import type { Ctx } from '../context.ts';
import { auditParts } from './audit-parts.ts';

/** What tenants, members and applications all need: who may, what is recorded, what is told. */
export async function groundParts(ctx: Ctx) {
  const access = new Access(ctx);
  const changes = new DomainChanges(ctx);
  const audit = await auditParts(ctx, { access });
  const lives = new VerticalLives(ctx, { audit: audit.audit, changes });
  const verticals = new Verticals(ctx, lives);
  return {
    ...audit,
    access,
    changes,
    departures: new Departures(ctx, lives),
    enablement: new Enablement(ctx, { access, audit: audit.audit, changes, verticals }),
    lives,
    labels: new ServiceLabels(ctx),
    policies: new PolicyStore(ctx, audit),
    proof: new DomainProof(new NameServers(ctx.config.dnsServers)),
    verticals,
  };
}
export type GroundParts = Awaited<ReturnType<typeof groundParts>>;
