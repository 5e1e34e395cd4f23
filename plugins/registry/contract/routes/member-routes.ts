import { del, get, Id, Page, PageQuery, post, put, Type } from '@platform/sdk/contract';
import { Access, Invitation, InvitationShown, InvitationStatus, InvitationToken, Member, NewInvitation } from '../schema/member.ts';

const ofOrg = { org_id: Id };
const ofOrgUser = { org_id: Id, user_id: Id };
// Who is no member is removed already: 204 always, for a name that is no id as well (G-K-02).
const ofOrgAnybody = { org_id: Id, user_id: Type.String({ maxLength: 330 }) };
const ofOrgInvitation = { org_id: Id, invitation_id: Id };
const ofReference = { reference: Type.String({ maxLength: 200 }) };

const invitations = '/v1/org/{org_id}/invitations';
const memberships = '/v1/org/{org_id}/memberships';
const gate = 'sys:memberships:admin';
const reach = ['not_org_member', 'org_not_found', 'identity_unavailable'] as const;
const change = [...reach, 'org_suspended', 'record_archived', 'members_busy'] as const;
const removal = {
  gate,
  problems: [...change, 'last_owner', 'owner_required', 'identity_failed'],
  emits: ['platform:sys:membership:removed', 'platform:sys:identity:updated'],
} as const;
const revocation = {
  gate,
  returns: Invitation,
  problems: [...change, 'invitation_unknown', 'invitation_not_pending'],
  emits: ['platform:sys:invitation:revoked'],
} as const;

/** Members and invitations of an organization (G-SYS-06, G-SYS-07). */
export const memberRoutes = {
  listMemberships: get(memberships, {
    params: ofOrg,
    summary: 'Members of an organization',
    gate: 'sys:read',
    query: PageQuery,
    returns: Page(Member),
    problems: [...reach, 'invalid_cursor'],
  }),
  removeMembership: del(`${memberships}/{user_id}`, {
    params: ofOrgAnybody,
    summary: 'Remove a member from the organization and its environments',
    ...removal,
  }),
  removeMembershipOf: del(memberships, {
    params: ofOrg,
    summary: 'The same, the member named in the query',
    query: { user_id: Type.String({ minLength: 1, maxLength: 100 }) },
    ...removal,
  }),
  changeMembership: put(`${memberships}/{user_id}`, {
    params: ofOrgUser,
    summary: "Change a member's level",
    gate,
    body: Type.Object({ access: Access }),
    returns: Member,
    problems: [...change, 'member_not_found', 'last_owner', 'owner_required', 'identity_failed', 'access_model_missing'],
    emits: ['platform:sys:identity:updated'],
    hidden: true,
  }),

  listInvitations: get(invitations, {
    params: ofOrg,
    summary: 'Invitations, newest first',
    gate,
    query: { ...PageQuery, status: Type.Optional(InvitationStatus) },
    returns: Page(Invitation),
    problems: [...reach, 'invalid_cursor'],
  }),
  createInvitation: post(invitations, {
    params: ofOrg,
    summary: 'Invite somebody by e-mail',
    gate,
    body: NewInvitation,
    status: 201,
    returns: Invitation,
    problems: [...change, 'invitation_pending', 'rate_limited', 'owner_required'],
    emits: ['platform:sys:invitation:sent', 'platform:sys:invitation:revoked'],
  }),
  acceptInvitation: post(`${invitations}/accept`, {
    params: ofOrg,
    summary: 'Accept an invitation',
    gate: { signedIn: 'Who is invited holds nothing here yet; the token and the verified e-mail decide (C6)' },
    limit: 4_096,
    body: InvitationToken,
    returns: Type.Object({ invitation_id: Id, org_id: Id, status: Type.Literal('accepted'), group: Type.String() }),
    problems: [
      'invitation_unknown',
      'invitation_revoked',
      'invitation_expired',
      'invitation_already_accepted',
      'invitation_email_mismatch',
      'not_org_member',
      'org_suspended',
      'record_archived',
      'access_model_missing',
      'identity_failed',
      'members_busy',
    ],
    emits: ['platform:sys:invitation:accepted', 'platform:sys:identity:updated'],
  }),
  getInvitation: get(`${invitations}/{invitation_id}`, {
    params: ofOrgInvitation,
    summary: 'One invitation',
    gate,
    returns: Invitation,
    problems: [...reach, 'invitation_unknown'],
  }),
  deleteInvitation: del(`${invitations}/{invitation_id}`, { params: ofOrgInvitation, summary: 'Revoke an invitation', ...revocation }),
  revokeInvitation: post(`${invitations}/{invitation_id}/revoke`, {
    params: ofOrgInvitation,
    summary: 'Revoke an invitation',
    ...revocation,
  }),

  describeInvitation: get('/v1/invitations/{reference}', {
    params: ofReference,
    summary: 'What an invitation says, by the SHA-256 of its token',
    gate: { public: 'A caller that knows the reference was sent the invitation, and may have no account yet; it opens nothing' },
    env: 'any',
    returns: InvitationShown,
    problems: ['invitation_unknown'],
    hidden: true,
  }),
  joinInvited: post('/v1/invitations/{reference}/join', {
    params: ofReference,
    summary: 'Take in somebody who opened an account by an invitation and has proved the address',
    gate: 'sys:invitations:join',
    env: 'any',
    body: Type.Object({ user_id: Id, email: Type.String({ maxLength: 320 }) }),
    returns: Type.Object({ invitation_id: Id, org_id: Id, status: Type.Literal('accepted'), group: Type.String() }),
    problems: [
      'invitation_unknown',
      'invitation_revoked',
      'invitation_expired',
      'invitation_already_accepted',
      'invitation_email_mismatch',
      'org_suspended',
      'record_archived',
      'access_model_missing',
      'identity_failed',
      'members_busy',
    ],
    emits: ['platform:sys:invitation:accepted', 'platform:sys:identity:updated'],
    hidden: true,
  }),
  checkInvitation: post('/v1/invitations/check', {
    summary: 'Whether somebody with a verified address has a pending invitation',
    gate: 'sys:invitations:check',
    env: 'any',
    limit: 4_096,
    body: Type.Object({ email: Type.String({ minLength: 1, maxLength: 320 }) }),
    returns: Type.Object({ pending: Type.Boolean() }),
    hidden: true,
  }),
};
