import { createHash, randomBytes } from 'node:crypto';
import { type Caller, reply, type RequestOf, type Sql, SYSTEM } from '@platform/sdk';
import type { Invitation } from '../../contract/schema/member.ts';
import type { AuditTrail } from '../audit/audit-trail.ts';
import type { Contract, Ctx, RegistryTx } from '../context.ts';
import type { Access } from '../tenants/access.ts';
import type { InvitationMail } from './invitation-mail.ts';
import type { MemberChanges } from './member-changes.ts';
import type { Owners } from './owners.ts';
import { holdMutableOrg } from '../tenants/status.ts';

const LIFETIME_MS = 7 * 86_400_000;
/** G-K-19 */
const PER_HOUR = 50;
const HOUR_MS = 3_600_000;

export const hashOf = (token: string): Buffer => createHash('sha256').update(token).digest();

/** Invitations of an organization: made, listed and withdrawn by its administrators (G-SYS-07). */
export class Invitations {
  readonly #ctx: Ctx;
  readonly #access: Access;
  readonly #audit: AuditTrail;
  readonly #changes: MemberChanges;
  readonly #owners: Owners;
  readonly #mail: InvitationMail;

  constructor(ctx: Ctx, parts: { access: Access; audit: AuditTrail; changes: MemberChanges; owners: Owners; mail: InvitationMail }) {
    this.#ctx = ctx;
    this.#access = parts.access;
    this.#audit = parts.audit;
    this.#changes = parts.changes;
    this.#owners = parts.owners;
    this.#mail = parts.mail;
  }

  async list({ params, query, caller }: RequestOf<Contract, 'listInvitations'>) {
    await this.#access.org(caller, params.org_id, 'admin');
    const { sql } = this.#ctx.db;
    const status = query.status ?? null;
    const spec = { list: `invitations ${params.org_id} ${status}`, order: { created_at: 'time', invitation_id: 'id' } } as const;
    return this.#ctx.page(
      query,
      spec,
      ({ where, order, limit }) => sql<Invitation[]>`
      select ${columns(sql)} from invitations
      where org_id = ${params.org_id} and (${status}::text is null or status = ${status}) and ${where} order by ${order} limit ${limit}`,
    );
  }

  async get({ params, caller }: RequestOf<Contract, 'getInvitation'>): Promise<Invitation> {
    await this.#access.org(caller, params.org_id, 'admin');
    return this.#find(this.#ctx.db.sql, params);
  }

  /** For the console's gate: an address whose holder may come in to accept (D-02). The caller vouches that it is verified. */
  async check({ body }: RequestOf<Contract, 'checkInvitation'>) {
    const now = this.#ctx.clock.now().toISOString();
    const [found] = await this.#ctx.db.sql<object[]>`
      select 1 from invitations join orgs using (org_id)
      where lower(email) = lower(${body.email.trim()}) and invitations.status = 'pending' and expires_at > ${now}
        and orgs.status = 'active' limit 1`;
    return { pending: found !== undefined };
  }

  /** The token leaves here once, inside the sealed mail. */
  async create({ params, body, caller, correlationId }: RequestOf<Contract, 'createInvitation'>) {
    const { platform, clock, problem } = this.#ctx;
    const org = await this.#access.org(caller, params.org_id, 'admin');
    if (body.access === 'owner') await this.#owners.requireOwner(caller, org.org_id);
    const email = body.email.trim();
    const token = randomBytes(32).toString('base64url');
    const now = clock.now();
    const row = {
      invitation_id: platform.newId(),
      org_id: org.org_id,
      email,
      access: body.access ?? ('admin' as const),
      token_hash: hashOf(token),
      expires_at: new Date(now.getTime() + LIFETIME_MS).toISOString(),
      created_at: now.toISOString(),
      created_by: caller.userId ?? caller.subject,
    };
    const invitation = await this.#changes.run(org.org_id, async tx => {
      await holdMutableOrg(this.#ctx, tx.sql, org.org_id);
      await this.#requireBudget(tx, org.org_id, now);
      await this.#withdrawExpired(tx, { orgId: org.org_id, email, now, caller, correlationId });
      const [made] = await tx.sql<
        Invitation[]
      >`insert into invitations ${tx.sql.row(row)} on conflict do nothing returning ${columns(tx.sql)}`;
      if (!made) throw problem('invitation_pending', { detail: 'Revoke the pending invitation to send another.' });
      await this.#mail.queue(tx, { invitation: made, orgName: org.display_name, token, correlationId });
      await tx.emit('platform:sys:invitation:sent', SYSTEM.envId, { org_id: org.org_id, invitation_id: made.invitation_id });
      await this.#record(tx, 'invitation.sent', made, caller, correlationId);
      return made;
    });
    return reply(invitation, { headers: { location: `/v1/org/${org.org_id}/invitations/${invitation.invitation_id}` } });
  }

  async revoke({ params, caller, correlationId }: RequestOf<Contract, 'revokeInvitation'>): Promise<Invitation> {
    const { org_id: orgId } = await this.#access.org(caller, params.org_id, 'admin');
    return this.#changes.run(orgId, async tx => {
      await holdMutableOrg(this.#ctx, tx.sql, orgId);
      const invitation = await this.#find(tx.sql, params);
      if (invitation.status !== 'pending') throw this.#ctx.problem('invitation_not_pending', { detail: `It is ${invitation.status}.` });
      return this.#withdraw(tx, invitation.invitation_id, caller, correlationId);
    });
  }

  async #withdraw(tx: RegistryTx, invitationId: string, caller: Caller, correlationId: string): Promise<Invitation> {
    const [revoked] = await tx.sql<
      [Invitation]
    >`update invitations set status = 'revoked' where invitation_id = ${invitationId} returning ${columns(tx.sql)}`;
    // A withdrawn invitation needs no mail any more.
    await tx.cancel('inviteByMail', invitationId);
    await tx.emit('platform:sys:invitation:revoked', SYSTEM.envId, { org_id: revoked.org_id, invitation_id: invitationId });
    await this.#record(tx, 'invitation.revoked', revoked, caller, correlationId);
    return revoked;
  }

  /** An expired invitation is still `pending` in its row; the next one for the same e-mail takes its place. */
  async #withdrawExpired(
    tx: RegistryTx,
    { orgId, email, now, caller, correlationId }: { orgId: string; email: string; now: Date; caller: Caller; correlationId: string },
  ): Promise<void> {
    const [expired] = await tx.sql<{ invitation_id: string }[]>`
      select invitation_id from invitations where org_id = ${orgId} and lower(email) = lower(${email}) and status = 'pending'
        and expires_at <= ${now.toISOString()}`;
    if (expired) await this.#withdraw(tx, expired.invitation_id, caller, correlationId);
  }

  /** Counted from the rows of what was sent, and so no matter of `ctx.limit`: neither a restart nor a store that is lost forgets it. */
  async #requireBudget(tx: RegistryTx, orgId: string, now: Date): Promise<void> {
    const since = new Date(now.getTime() - HOUR_MS).toISOString();
    const recent = await tx.sql<
      { created_at: string }[]
    >`select created_at from invitations where org_id = ${orgId} and created_at > ${since} order by created_at desc limit ${PER_HOUR}`;
    const oldest = recent[PER_HOUR - 1];
    if (!oldest) return;
    const wait = String(Math.max(1, Math.ceil((Date.parse(oldest.created_at) + HOUR_MS - now.getTime()) / 1_000)));
    throw this.#ctx.problem('rate_limited', {
      detail: `At most ${PER_HOUR} invitations in an hour. Try again in ${wait} seconds.`,
      headers: {
        'retry-after': wait,
        ratelimit: `"invitations";r=0;t=${wait}`,
        'ratelimit-policy': `"invitations";q=${PER_HOUR};w=${HOUR_MS / 1_000}`,
      },
    });
  }

  async #find(sql: Sql, { org_id, invitation_id }: { org_id: string; invitation_id: string }): Promise<Invitation> {
    const [found] = await sql<Invitation[]>`
      select ${columns(sql)} from invitations where org_id = ${org_id} and invitation_id = ${invitation_id}`;
    if (!found) throw this.#ctx.problem('invitation_unknown', { detail: 'This organization has no such invitation.' });
    return found;
  }

  /** The e-mail is in the invitation alone: the trail is kept longer, and read by more. */
  async #record(
    tx: RegistryTx,
    action: string,
    { invitation_id, org_id }: Invitation,
    caller: Caller,
    correlationId: string,
  ): Promise<void> {
    await this.#audit.write(tx, {
      action,
      envId: SYSTEM.envId,
      caller,
      correlationId,
      resource: { type: 'invitation', id: invitation_id },
      details: { org_id },
    });
  }
}

/** Everything but the token's hash. */
const columns = (sql: Sql): unknown => sql`invitation_id, org_id, email, access, status, expires_at, created_at, created_by, accepted_at`;
