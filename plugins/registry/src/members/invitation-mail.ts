import { MailQueue, type SealedBox, SYSTEM } from '@platform/sdk';
import type { Invitation } from '../../contract/schema/member.ts';
import type { Ctx } from '../context.ts';

export interface InvitationMail {
  readonly to: string;
  readonly subject: string;
  readonly body: string;
  readonly invitation_id: string;
  readonly correlation_id: string;
}

/** Mail of invitations on its way to the notification service. */
export function invitationMails(ctx: Ctx, box: SealedBox): MailQueue<InvitationMail> {
  return new MailQueue<InvitationMail>({
    ctx,
    box,
    service: 'sys',
    send: ({ to, subject, body, invitation_id, correlation_id }, mailId, signal) =>
      ctx.services.notification.send({
        body: {
          env_id: SYSTEM.envId,
          category: 'system',
          // Who is invited may have no account yet (G-POST-01).
          recipient: { user_id: `email:${to}`, email: to },
          subject,
          body,
          channels: ['email'],
          resource_refs: [{ type: 'invitation', id: invitation_id }],
          idempotency_key: mailId,
          correlation_id,
        },
        idempotencyKey: mailId,
        signal,
      }),
  });
}

/** What an invited person reads. The link shows; only a click there consumes (H-08). */
export function invitationMail(ctx: Ctx, parts: { invitation: Invitation; orgName: string; token: string; correlationId: string }): InvitationMail {
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
