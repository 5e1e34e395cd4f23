import type { Invitation } from '../../contract/schema/member.ts';
import type { Ctx } from '../context.ts';
import type { Mail } from './mail-queue.ts';

/** What an invited person reads. The link shows; only a click there consumes (H-08). */
export function invitationMail(ctx: Ctx, parts: { invitation: Invitation; orgName: string; token: string; correlationId: string }): Mail {
  const { invitation, token, correlationId } = parts;
  const { org_id, email, expires_at } = invitation;
  // A name is one line, whatever was typed: it stands in a subject.
  const orgName = parts.orgName.replaceAll(/\s+/g, ' ');
  const link = `${ctx.platform.publicOrigin(`console.ops.sys.${ctx.platform.domain}`)}/#/bootstrap?${new URLSearchParams({ org: org_id, invitation: token })}`;
  return {
    to: email,
    subject: `Invitation to ${orgName}`,
    body: `You are invited to join ${orgName}.\n\nOpen this link, sign in as ${email} and accept:\n${link}\n\nThe invitation ends on ${expires_at.slice(0, 10)}. If you did not expect it, do nothing.\n`,
    invitation_id: invitation.invitation_id,
    correlation_id: correlationId,
  };
}
