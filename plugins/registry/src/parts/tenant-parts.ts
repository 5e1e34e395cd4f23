import { Bootstrap } from '../bootstrap.ts';
import { Branding } from '../branding.ts';
import { DomainProofs } from '../tenants/domain-proofs.ts';
import { Creations } from '../tenants/endings/creations.ts';
import { DeletionPreview } from '../tenants/endings/deletion-preview.ts';
import { Deletion } from '../tenants/endings/deletion.ts';
import { EnvironmentPurges } from '../tenants/endings/environment-purges.ts';
import { IdentityFollowUps } from '../tenants/endings/identity-follow-ups.ts';
import { Unfinished } from '../tenants/endings/unfinished.ts';
import { EnvironmentStates } from '../tenants/environment-state.ts';
import { Envs } from '../tenants/envs.ts';
import { Orgs } from '../tenants/orgs.ts';
import { SlugAvailability } from '../tenants/slug-availability.ts';
import type { Ctx } from '../context.ts';
import type { GroundParts } from './ground-parts.ts';

/** Organizations and environments, from their creation to their end. */
export function tenantParts(ctx: Ctx, ground: GroundParts) {
  const { access, audit, changes, enablement, policies, proof, verticals } = ground;
  const followUps = new IdentityFollowUps(ctx);
  const creations = new Creations(ctx, { audit, followUps });
  const states = new EnvironmentStates(ctx);
  const tenants = { access, audit, changes, creations, followUps, states };
  const purges = new EnvironmentPurges(ctx, verticals);
  return {
    bootstrap: new Bootstrap(ctx, { access, enablement }),
    branding: new Branding(ctx, { access, audit, changes }),
    creations,
    deletion: new Deletion(ctx, { ...tenants, purges }),
    envs: new Envs(ctx, { ...tenants, policies }),
    followUps,
    orgDomains: new DomainProofs(ctx, { access, audit, changes, proof }),
    orgs: new Orgs(ctx, tenants),
    preview: new DeletionPreview(ctx, access, purges),
    purges,
    slugs: new SlugAvailability(ctx, access),
    states,
    unfinished: new Unfinished(ctx, tenants),
  };
}
