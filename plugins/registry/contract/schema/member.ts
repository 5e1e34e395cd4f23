import { Id, nullable, type Static, Type } from '@platform/sdk/contract';
import { Stamp } from './field.ts';

export const Access = Type.Union([Type.Literal('owner'), Type.Literal('admin'), Type.Literal('viewer')]);
export const Member = Type.Object({
  user_id: Type.String(),
  email: Type.String(),
  display_name: nullable(Type.String()),
  groups: Type.Array(Type.String()),
  access: Access,
  joined_at: Stamp,
});
export type Member = Static<typeof Member>;

export const InvitationStatus = Type.Union([Type.Literal('pending'), Type.Literal('accepted'), Type.Literal('revoked')]);
/** G-SYS-07. Expiry is computed: a pending invitation past `expires_at` is accepted by nobody. */
export const Invitation = Type.Object({
  invitation_id: Id,
  org_id: Id,
  email: Type.String(),
  /** The level that accepting it gives. */
  access: Access,
  status: InvitationStatus,
  expires_at: Stamp,
  created_at: Stamp,
  created_by: Type.String(),
  accepted_at: nullable(Stamp),
});
export type Invitation = Static<typeof Invitation>;
export const NewInvitation = Type.Object({
  access: Type.Optional(Access),
  email: Type.String({ minLength: 3, maxLength: 320, pattern: '^\\s*[^@\\s\\x00-\\x1f]+@[^@\\s\\x00-\\x1f]+\\s*$' }),
});
/** What an invitation says to its recipient. */
export const InvitationShown = Type.Object({
  org_id: Id,
  org_name: Type.String(),
  email: Type.String(),
  access: Access,
  status: InvitationStatus,
  /** Past its end it is accepted by nobody. */
  open: Type.Boolean(),
  expires_at: Stamp,
  invited_by: Type.String(),
  inviter: nullable(Type.String()),
});
/** SHA-256 of the token of an invitation, in base64url: names it, and accepts nothing by itself. */
export const InvitationReference = '^[A-Za-z0-9_-]{43}$';
export const InvitationToken = Type.Object({ token: Type.String({ minLength: 1, maxLength: 200 }) });
