import { isProblem, type RequestOf, SYSTEM } from '@platform/sdk';
import type { Member } from '../../contract/schema/member.ts';
import type { AuditTrail } from '../audit/audit-trail.ts';
import type { Contract, Ctx } from '../context.ts';
import type { Access, Level } from '../tenants/access.ts';
import type { MemberChanges } from './member-changes.ts';
import { holdMutableOrg } from '../tenants/status.ts';
import { groupOf, groupsOf, highestOf } from './org-groups.ts';
import type { Owners } from './owners.ts';

/** What changes of members are made of. */
export interface MemberParts {
  readonly access: Access;
  readonly audit: AuditTrail;
  readonly changes: MemberChanges;
  readonly owners: Owners;
}

/** Members of an organization, live from the identity service, and their levels (G-SYS-06). */
export class Memberships {
  readonly #ctx: Ctx;
  readonly #parts: MemberParts;

  constructor(ctx: Ctx, parts: MemberParts) {
    this.#ctx = ctx;
    this.#parts = parts;
  }

  async list({ params, query, caller }: RequestOf<Contract, 'listMemberships'>) {
    const { org_id } = await this.#parts.access.org(caller, params.org_id);
    return this.#read(org_id, query);
  }

  async change({ params, body, caller, correlationId }: RequestOf<Contract, 'changeMembership'>): Promise<Member> {
    const { org_id } = await this.#parts.access.org(caller, params.org_id, 'admin');
    const userId = params.user_id;
    return this.#parts.changes.run(org_id, async tx => {
      await holdMutableOrg(this.#ctx, tx.sql, org_id);
      const before = await this.#member(org_id, userId);
      if (before.access === 'owner' && body.access !== 'owner') await this.#parts.owners.requireOther(caller, org_id, userId);
      else if (body.access === 'owner') await this.#parts.owners.requireOwner(caller, org_id);
      const wanted = groupOf(org_id, body.access);
      if (before.groups.length === 1 && before.groups[0] === wanted) return before;
      await tx.sql`delete from acceptances where org_id = ${org_id} and user_id = ${userId}`;
      await this.#parts.changes.told(tx, userId);
      const details = { org_id, from: before.access, to: body.access };
      await this.#parts.audit.write(tx, {
        action: 'membership.changed',
        envId: SYSTEM.envId,
        caller,
        correlationId,
        resource: { type: 'user', id: userId },
        details,
      });
      // In before out: whatever fails between, a member never falls out of the organization.
      await this.#parts.changes.ask(async signal => {
        const { identity } = this.#ctx.services;
        await identity.putGroupMember({ params: { group: wanted, user_id: userId }, targetEnvId: SYSTEM.envId, signal });
        for (const group of before.groups.filter(held => held !== wanted))
          await identity.deleteGroupMember({ params: { group, user_id: userId }, targetEnvId: SYSTEM.envId, signal });
      });
      return { ...before, groups: [wanted], access: body.access };
    });
  }

  async #member(orgId: string, userId: string): Promise<Member> {
    const { items } = await this.#read(orgId, { user_id: userId });
    const [member] = items;
    if (!member) throw this.#ctx.problem('member_not_found', { detail: 'Nobody of this id is a member. Invite them first.' });
    return member;
  }

  async #read(orgId: string, query: { limit?: number; cursor?: string; user_id?: string }) {
    const { items, next_cursor } = await this.#people(orgId, { ...query, groups: groupsOf(orgId).join(',') });
    return {
      items: items.map(member => ({
        ...member,
        display_name: member.display_name ?? null,
        access: highestOf(orgId, member.groups) as Level,
      })),
      next_cursor,
    };
  }

  async #people(orgId: string, query: { groups: string; limit?: number; cursor?: string; user_id?: string }) {
    try {
      return await this.#ctx.services.identity.membersOf({ query, targetEnvId: SYSTEM.envId });
    } catch (cause) {
      if (isProblem(cause) && cause.code === 'invalid_cursor')
        throw this.#ctx.problem('invalid_cursor', { cause, detail: 'Start again without a cursor.' });
      throw this.#ctx.problem('identity_unavailable', { cause, headers: { 'retry-after': '2' } });
    }
  }
}
