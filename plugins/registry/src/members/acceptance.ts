import { type Caller, isId, isProblem, type RequestOf, type Sql, SYSTEM, type TaskRun } from '@platform/sdk';
import type { BegunAcceptance } from '../../contract/schema/settling.ts';
import type { Org } from '../../contract/schema/tenant.ts';
import type { AuditTrail } from '../audit/audit-trail.ts';
import type { Contract, Ctx, RegistryTx } from '../context.ts';
import { hashOf } from './invitations.ts';
import { brokenAt, type MemberChanges } from './member-changes.ts';
import type { Level } from '../tenants/access.ts';
import { requireMutable } from '../tenants/status.ts';
import { groupOf } from './org-groups.ts';

interface Row {
  readonly invitation_id: string;
  readonly org_id: string;
  readonly email: string;
  readonly access: Level;
  readonly status: 'pending' | 'accepted' | 'revoked';
  readonly expires_at: string;
  readonly org_status: Org['status'];
}
interface Asked {
  readonly orgId: string;
  /** Of the token that was sent. */
  readonly hash: Buffer;
  readonly userId: string;
  /** Only where the platform itself has verified it. */
  readonly email: string | undefined;
}
interface Begun {
  readonly acceptance_id: string;
  readonly org_id: string;
  readonly user_id: string;
  readonly begun_at: string;
  /** The level that the invitation gives. */
  readonly access: Level;
}

/**
 * Accepting an invitation: status, audit, event and group together (C7). The group lives elsewhere, so its verb comes last and an
 * acceptance that has begun is on record before: if the commit is lost after the verb, a task takes the person out again.
 */
export class Acceptance {
  readonly #ctx: Ctx;
  readonly #audit: AuditTrail;
  readonly #changes: MemberChanges;

  constructor(ctx: Ctx, parts: { audit: AuditTrail; changes: MemberChanges }) {
    this.#ctx = ctx;
    this.#audit = parts.audit;
    this.#changes = parts.changes;
  }

  async accept({ params, body, caller, correlationId }: RequestOf<Contract, 'acceptInvitation'>) {
    if (!caller.userId) throw this.#ctx.problem('not_org_member', { detail: 'caller is not a member of the org' });
    // An environment's administrators say what is verified there; here counts what the platform itself has verified (C6).
    const verified = caller.emailVerified && caller.authEnvId === SYSTEM.envId;
    return this.#accept(
      { orgId: params.org_id, hash: hashOf(body.token), userId: caller.userId, email: verified ? caller.email : undefined },
      caller,
      correlationId,
    );
  }

  /** For somebody who opened an account by the invitation: the identity service says that the address is proved (F-51). */
  async join({ params, body, caller, correlationId }: RequestOf<Contract, 'joinInvited'>) {
    const hash = Buffer.from(params.reference, 'base64url');
    const [row] = await this.#ctx.db.sql<{ org_id: string }[]>`select org_id from invitations where token_hash = ${hash}`;
    return this.#accept({ orgId: row?.org_id ?? '', hash, userId: body.user_id, email: body.email }, caller, correlationId);
  }

  async #accept(asked: Asked, caller: Caller, correlationId: string) {
    const { userId } = asked;
    const { org_id, access } = await this.#requireOpen(this.#ctx.db.sql, asked);
    const group = groupOf(org_id, access);
    const begun = await this.#begin(asked, access);
    try {
      return await this.#changes.run(org_id, async tx => {
        // Whatever it says of the organization's status stays so until the commit; before the invitation, as a delete locks them.
        await tx.sql`select 1 from orgs where org_id = ${org_id} for share`;
        const { invitation_id } = await this.#requireOpen(tx.sql, asked, tx.sql`for update of i`);
        if (begun) await this.#requireOnRecord(tx, begun);
        await tx.sql`update invitations set status = 'accepted', accepted_at = ${this.#ctx.clock.now().toISOString()},
          accepted_by = ${userId} where invitation_id = ${invitation_id}`;
        await tx.emit('platform:sys:invitation:accepted', SYSTEM.envId, { org_id, invitation_id });
        await this.#changes.told(tx, userId);
        const details = { org_id, ...(caller.userId === undefined ? { user_id: userId } : {}) };
        await this.#audit.write(tx, {
          action: 'invitation.accepted',
          envId: SYSTEM.envId,
          caller,
          correlationId,
          resource: { type: 'invitation', id: invitation_id },
          details,
        });
        await this.#changes.ask(signal =>
          this.#ctx.services.identity.putGroupMember({ params: { group, user_id: userId }, targetEnvId: SYSTEM.envId, signal }),
        );
        return { invitation_id, org_id, status: 'accepted' as const, group };
      });
    } catch (error) {
      // A plain refusal: the verb was not asked, or it said no. Anything else may have happened there.
      if (begun && isProblem(error) && error.status < 500) await this.#ctx.db.tx(tx => this.#forget(tx, begun));
      throw error;
    }
  }

  /** The task of one: takes a person out again who is in a group by an acceptance that was never committed. */
  async settle({ acceptance_id }: BegunAcceptance, run: TaskRun): Promise<void> {
    const [begun] = await this.#ctx.db.sql<
      Begun[]
    >`select acceptance_id, org_id, user_id, begun_at, access from acceptances join invitations using (invitation_id, org_id)
      where acceptance_id = ${acceptance_id}`;
    if (begun) await this.#settle(begun, run);
  }

  async #settle({ acceptance_id, org_id, user_id, begun_at, access }: Begun, run: TaskRun): Promise<void> {
    await this.#changes.run(org_id, async tx => {
      const [mine] = await tx.sql<object[]>`delete from acceptances where acceptance_id = ${acceptance_id} returning 1`;
      const [accepted] = await tx.sql<
        object[]
      >`select 1 from invitations where org_id = ${org_id} and accepted_by = ${user_id} and accepted_at >= ${begun_at}`;
      await run.finish(tx);
      if (!mine || accepted) return;
      await this.#changes.told(tx, user_id);
      const params = { group: groupOf(org_id, access), user_id };
      await this.#changes.ask(signal => this.#ctx.services.identity.deleteGroupMember({ params, targetEnvId: SYSTEM.envId, signal }));
      this.#ctx.log.warn({ org_id, acceptance_id }, 'an acceptance was not committed; its member was taken out again');
    });
  }

  /** On record in a transaction of its own; nothing for a person who was in the group before and stays there whatever happens. */
  async #begin({ orgId, hash, userId }: Asked, access: Level): Promise<Begun | undefined> {
    const { groups } = await this.#changes.ask(signal => this.#ctx.services.identity.userGroups({ params: { user_id: userId }, signal }));
    if (groups.some(({ name, env_id }) => name === groupOf(orgId, access) && env_id === SYSTEM.envId)) return undefined;
    const begun = {
      acceptance_id: this.#ctx.platform.newId(),
      org_id: orgId,
      user_id: userId,
      begun_at: this.#ctx.clock.now().toISOString(),
      access,
    };
    await this.#ctx.db.tx(async tx => {
      await tx.sql`insert into acceptances (acceptance_id, invitation_id, org_id, user_id, begun_at)
        select ${begun.acceptance_id}, invitation_id, ${orgId}, ${userId}, ${begun.begun_at} from invitations where token_hash = ${hash}`;
      await tx.enqueue('settleAcceptance', { acceptance_id: begun.acceptance_id }, { key: begun.acceptance_id, at: brokenAt(this.#ctx) });
    });
    return begun;
  }

  /** An acceptance that waited so long for a turn that its record was taken for broken must begin again. */
  async #requireOnRecord(tx: RegistryTx, begun: Begun): Promise<void> {
    if (!(await this.#forget(tx, begun))) throw this.#ctx.problem('members_busy', { headers: { 'retry-after': '2' } });
  }

  /** @returns whether it was on record */
  async #forget(tx: RegistryTx, { acceptance_id }: Begun): Promise<boolean> {
    await tx.cancel('settleAcceptance', acceptance_id);
    return (await tx.sql<object[]>`delete from acceptances where acceptance_id = ${acceptance_id} returning 1`).length > 0;
  }

  /** The order of checks is G-SYS-07's; whether the access model is there, the verb itself says last. */
  async #requireOpen(sql: Sql, { orgId, hash, email }: Asked, lock: unknown = sql``): Promise<Row> {
    const { problem, clock } = this.#ctx;
    const [row] = isId(orgId)
      ? await sql<Row[]>`
          select i.invitation_id, i.org_id, i.email, i.access, i.status, i.expires_at, o.status as org_status
          from invitations i join orgs o using (org_id) where i.token_hash = ${hash} and i.org_id = ${orgId} ${lock}`
      : [];
    if (!row) throw problem('invitation_unknown', { detail: 'The link is not one of this organization. Ask for a new invitation.' });
    if (row.status === 'revoked') throw problem('invitation_revoked', { detail: 'Ask for a new invitation.' });
    if (row.status === 'pending' && Date.parse(row.expires_at) <= clock.now().getTime())
      throw problem('invitation_expired', { detail: 'Ask for a new invitation.' });
    if (row.status === 'accepted')
      throw problem('invitation_already_accepted', { detail: 'It works once. If it was not you, tell an owner of the organization.' });
    if (email?.trim().toLowerCase() !== row.email.toLowerCase())
      throw problem('invitation_email_mismatch', {
        detail: 'Sign in to the console with the e-mail the invitation was sent to, and verify it.',
      });
    requireMutable(this.#ctx, { org: { status: row.org_status } });
    return row;
  }
}
