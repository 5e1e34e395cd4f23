import type { memberRoutes } from '../../contract/routes/member-routes.ts';
import type { Handlers } from '../context.ts';
import type { Acceptance } from './acceptance.ts';
import type { Invitations } from './invitations.ts';
import type { Memberships } from './memberships.ts';
import type { Removal } from './removal.ts';
import type { ShownInvitation } from './shown-invitation.ts';

interface Parts {
  readonly memberships: Memberships;
  readonly removal: Removal;
  readonly invitations: Invitations;
  readonly acceptance: Acceptance;
  readonly shown: ShownInvitation;
}

/** Routes of members and invitations to who answers them. */
export const memberHandlers = ({ memberships, removal, invitations, acceptance, shown }: Parts): Handlers<keyof typeof memberRoutes> => ({
  listMemberships: request => memberships.list(request),
  removeMembership: request => removal.remove(request),
  removeMembershipOf: ({ query, ...request }) =>
    removal.remove({ ...request, query: {}, params: { ...request.params, user_id: query.user_id } }),
  changeMembership: request => memberships.change(request),
  listInvitations: request => invitations.list(request),
  createInvitation: request => invitations.create(request),
  acceptInvitation: request => acceptance.accept(request),
  describeInvitation: request => shown.describe(request),
  joinInvited: request => acceptance.join(request),
  getInvitation: request => invitations.get(request),
  checkInvitation: request => invitations.check(request),
  deleteInvitation: request => invitations.revoke({ ...request, body: undefined }),
  revokeInvitation: request => invitations.revoke(request),
});
