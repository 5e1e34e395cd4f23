import { type Caller, isProblem, type RequestOf, SYSTEM } from '@platform/sdk';
import type { Member } from '../../contract/schema/member.ts';
import type { AuditTrail } from '../audit/audit-trail.ts';
import type { Contract, Ctx } from '../context.ts';
import type { Access, Level } from '../tenants/access.ts';
import { isUuid } from '../uuid.ts';
import { type MemberChanges, requireActive } from './member-changes.ts';
import { groupOf, groupsOf, highestOf } from './org-groups.ts';

/** Members of an organization, live from the identity service (G-SYS-06). The last owner stays, whoever asks at the same time. */
export class Memberships {
  readonly #ctx: Ctx;
  readonly #access: Access;
  readonly #audit: AuditTrail;
  readonly #changes: MemberChanges;

  constructor(ctx: Ctx, parts: { access: Access; audit: AuditTrail; changes: MemberChanges }) {
    this.#ctx = ctx;
    this.#access = parts.access;
    this.#audit = parts.audit;
    this.#changes = parts.changes;
  }

  async list({ params, query, caller }: RequestOf<Contract, 'listMemberships'>) {
    const { org_id } = await this.#access.org(caller, params.org_id);
    return this.#read(org_id, query);
  }

  /** Idempotent: who is no member is removed already, and nothing is told twice. */
  async remove({ params, caller, correlationId }: RequestOf<Contract, 'removeMembership'>): Promise<void> {
    const org = await this.#access.org(caller, params.org_id, 'admin');
    requireActive(this.#ctx, org);
    const { org_id } = org;
    const userId = params.user_id;
    if (!isUuid(userId)) return;
    const envs = await this.#ctx.db.sql<{ env_id: string }[]>`select env_id from envs where org_id = ${org_id}`;
    const prefixes = [`platform:org:${org_id}:`, ...envs.map(({ env_id }) => `platform:env:${env_id}:`)];
    await this.#changes.run(org_id, async tx => {
      const { groups } = await this.#changes.ask(signal => this.#ctx.services.identity.userGroups({ params: { user_id: userId }, signal }));
      if (!groups.some(({ name }) => prefixes.some(prefix => name.startsWith(prefix)))) return;
      if (groups.some(({ name }) => name === groupOf(org_id, 'owner'))) await this.#requireOtherOwner(caller, org_id, userId);
      await tx.sql`delete from acceptances where org_id = ${org_id} and user_id = ${userId}`;
      await tx.emit('platform:sys:membership:removed', SYSTEM.envId, { org_id, user_id: userId });
      await this.#changes.told(tx, userId);
      await this.#audit.write(tx, { action: 'membership.removed', envId: SYSTEM.envId, caller, correlationId, resource: { type: 'user', id: userId }, details: { org_id } });
      await this.#changes.ask(signal => this.#ctx.services.identity.leaveGroups({ params: { user_id: userId }, body: { prefixes }, idempotencyKey: `${correlationId}:${userId}`, signal }));
    });
  }

  async change({ params, body, caller, correlationId }: RequestOf<Contract, 'changeMembership'>): Promise<Member> {
    const org = await this.#access.org(caller, params.org_id, 'admin');
    requireActive(this.#ctx, org);
    const { org_id } = org;
    const userId = params.user_id;
    return this.#changes.run(org_id, async tx => {
      const before = await this.#member(org_id, userId);
      if (before.access === 'owner' && body.access !== 'owner') await this.#requireOtherOwner(caller, org_id, userId);
      else if (body.access === 'owner') await this.#requireOwner(caller, org_id);
      const wanted = groupOf(org_id, body.access);
      if (before.groups.length === 1 && before.groups[0] === wanted) return before;
      await tx.sql`delete from acceptances where org_id = ${org_id} and user_id = ${userId}`;
      await this.#changes.told(tx, userId);
      const details = { org_id, from: before.access, to: body.access };
      await this.#audit.write(tx, { action: 'membership.changed', envId: SYSTEM.envId, caller, correlationId, resource: { type: 'user', id: userId }, details });
      // In before out: whatever fails between, a member never falls out of the organization.
      await this.#changes.ask(async signal => {
        const { identity } = this.#ctx.services;
        await identity.putGroupMember({ params: { group: wanted, user_id: userId }, targetEnvId: SYSTEM.envId, signal });
        for (const group of before.groups.filter(held => held !== wanted)) await identity.deleteGroupMember({ params: { group, user_id: userId }, targetEnvId: SYSTEM.envId, signal });
      });
      return { ...before, groups: [wanted], access: body.access };
    });
  }

  async #member(orgId: string, userId: string): Promise<Member> {
    const { items } = isUuid(userId) ? await this.#read(orgId, { user_id: userId }) : { items: [] };
    const [member] = items;
    if (!member) throw this.#ctx.problem('member_not_found', { detail: 'Nobody of this id is a member. Invite them first.' });
    return member;
  }

  async #requireOtherOwner(caller: Caller, orgId: string, userId: string): Promise<void> {
    await this.#requireOwner(caller, orgId);
    const { items } = await this.#people(orgId, { groups: groupOf(orgId, 'owner'), limit: 2 });
    if (items.every(({ user_id }) => user_id === userId)) throw this.#ctx.problem('last_owner', { detail: 'Make somebody else an owner first.' });
  }

  /** Owners make and unmake owners; an administrator would otherwise take the organization over. */
  async #requireOwner(caller: Caller, orgId: string): Promise<void> {
    if (caller.platformAdmin || (caller.kind === 'machine' && caller.vertical === 'platform')) return;
    if ((await this.#access.levels(caller)).get(orgId) !== 'owner') throw this.#ctx.problem('owner_required', { detail: 'Ask an owner of the organization.' });
  }

  async #read(orgId: string, query: { limit?: number; cursor?: string; user_id?: string }) {
    const { items, next_cursor } = await this.#people(orgId, { ...query, groups: groupsOf(orgId).join(',') });
    return { items: items.map(member => ({ ...member, display_name: member.display_name ?? null, access: highestOf(orgId, member.groups) as Level })), next_cursor };
  }

  async #people(orgId: string, query: { groups: string; limit?: number; cursor?: string; user_id?: string }) {
    try {
      return await this.#ctx.services.identity.membersOf({ query, targetEnvId: SYSTEM.envId });
    } catch (cause) {
      if (isProblem(cause) && cause.code === 'invalid_cursor') throw this.#ctx.problem('invalid_cursor', { cause, detail: 'Start again without a cursor.' });
      throw this.#ctx.problem('identity_unavailable', { cause, headers: { 'retry-after': '2' } });
    }
  }
}
