import { type RequestOf, SYSTEM } from '@platform/sdk';
import { type Invitation, InvitationReference } from '../../contract/schema/member.ts';
import type { Contract, Ctx } from '../context.ts';

type Row = Pick<Invitation, 'org_id' | 'email' | 'access' | 'status' | 'expires_at'> & {
  readonly org_name: string;
  readonly invited_by: string;
};

const REFERENCE = new RegExp(InvitationReference);
const LEVELS = ['owners', 'admins'] as const;
const ANSWER_MS = 1_000;

/** What an invitation says to its recipient, before there is an account that could be asked for (F-51). */
export class ShownInvitation {
  readonly #ctx: Ctx;

  constructor(ctx: Ctx) {
    this.#ctx = ctx;
  }

  async describe({ params }: RequestOf<Contract, 'describeInvitation'>) {
    const { db, clock, problem } = this.#ctx;
    const [row] = REFERENCE.test(params.reference)
      ? await db.sql<Row[]>`
          select i.org_id, o.display_name as org_name, i.email, i.access, i.status, i.expires_at, i.created_by as invited_by
          from invitations i join orgs o using (org_id) where i.token_hash = ${Buffer.from(params.reference, 'base64url')}`
      : [];
    if (!row) throw problem('invitation_unknown', { detail: 'Copy the whole link from the mail, or ask for a new invitation.' });
    const open = row.status === 'pending' && Date.parse(row.expires_at) > clock.now().getTime();
    return { ...row, open, inviter: await this.#nameOf(row.org_id, row.invited_by) };
  }

  /** A name is good to have, and never in the way. */
  async #nameOf(orgId: string, userId: string): Promise<string | null> {
    const groups = LEVELS.map(level => `platform:org:${orgId}:${level}`).join(',');
    try {
      const signal = AbortSignal.timeout(ANSWER_MS);
      const { items } = await this.#ctx.services.identity.membersOf({
        query: { groups, user_id: userId },
        targetEnvId: SYSTEM.envId,
        signal,
      });
      return items[0]?.display_name ?? items[0]?.email ?? null;
    } catch (error) {
      this.#ctx.log.debug({ err: error }, 'the name of who invited is not to be had');
      return null;
    }
  }
}
