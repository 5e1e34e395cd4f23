import { SYSTEM, type TaskRun } from '@platform/sdk';
import type { Invitation } from '../../contract/schema/member.ts';
import { templates } from '../../contract/templates.ts';
import type { Ctx, RegistryTx } from '../context.ts';

interface Mailed {
  readonly to: string;
  readonly org_name: string;
  readonly link: string;
  readonly invitation_id: string;
  readonly ends_on: string;
  readonly correlation_id: string;
}

/**
 * The mail of an invitation: queued with it, sealed until the notification service has taken it, and not sent when the invitation is gone
 * by then.
 */
export class InvitationMail {
  readonly #ctx: Ctx;

  constructor(ctx: Ctx) {
    this.#ctx = ctx;
  }

  /** In the transaction of the invitation. The link shows; only a click there consumes (H-08). */
  async queue(
    tx: RegistryTx,
    { invitation, orgName, token, correlationId }: { invitation: Invitation; orgName: string; token: string; correlationId: string },
  ): Promise<void> {
    const { platform } = this.#ctx;
    const { org_id, invitation_id, email: to, expires_at } = invitation;
    const link = `${platform.publicOrigin(platform.host('console'))}/#/bootstrap?${new URLSearchParams({
      org: org_id,
      invitation: token,
    })}`;
    // A name is one line, whatever was typed: it stands in a subject.
    const org_name = orgName.replaceAll(/\s+/g, ' ');
    await tx.enqueue(
      'inviteByMail',
      { to, org_name, link, invitation_id, ends_on: expires_at.slice(0, 10), correlation_id: correlationId },
      { key: invitation_id },
    );
  }

  async send({ to, org_name, link, invitation_id, ends_on, correlation_id }: Mailed, { taskId, signal }: TaskRun): Promise<void> {
    const [pending] = await this.#ctx.db.sql<
      object[]
    >`select 1 from invitations where invitation_id = ${invitation_id} and status = 'pending'`;
    if (!pending) return;
    const vars = { org_name, email: to, link, ends_on };
    const { subject, body } = templates.invitation.words.en;
    await this.#ctx.services.notification.send({
      body: {
        env_id: SYSTEM.envId,
        category: 'system',
        // Who is invited may have no account yet (G-POST-01).
        recipient: { user_id: `email:${to}`, email: to },
        template: { key: 'sys.invitation', vars },
        subject: filled(subject, vars),
        body: filled(body, vars),
        channels: ['email'],
        confidential: true,
        resource_refs: [{ type: 'invitation', id: invitation_id }],
        idempotency_key: taskId,
        correlation_id,
      },
      idempotencyKey: taskId,
      signal,
    });
  }
}

const filled = (text: string, vars: Readonly<Record<string, string>>): string =>
  text.replaceAll(/\{\{(\w+)\}\}/g, (_, name: string) => vars[name] ?? '');
