import { Acceptance } from '../members/acceptance.ts';
import { InvitationMail } from '../members/invitation-mail.ts';
import { Invitations } from '../members/invitations.ts';
import { MemberChanges } from '../members/member-changes.ts';
import { Memberships } from '../members/memberships.ts';
import { Owners } from '../members/owners.ts';
import { Removal } from '../members/removal.ts';
import { ShownInvitation } from '../members/shown-invitation.ts';
import { AccessListing } from '../policy/access-listing.ts';
import type { Ctx } from '../context.ts';
import type { GroundParts } from './ground-parts.ts';

/** Who belongs to an organization: invited, accepted, changed, removed. */
export function memberParts(ctx: Ctx, { access, audit, verticals }: GroundParts) {
  const changes = new MemberChanges(ctx);
  const mail = new InvitationMail(ctx);
  const members = { access, audit, changes, owners: new Owners(ctx, { access, changes }) };
  return {
    acceptance: new Acceptance(ctx, { audit, changes }),
    invitations: new Invitations(ctx, { ...members, mail }),
    listing: new AccessListing(ctx, verticals),
    mail,
    memberships: new Memberships(ctx, members),
    removal: new Removal(ctx, members),
    shown: new ShownInvitation(ctx),
  };
}
