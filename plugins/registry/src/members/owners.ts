import { type Caller, SYSTEM } from '@platform/sdk';
import type { Ctx } from '../context.ts';
import { type Access, isTrusted } from '../tenants/access.ts';
import type { MemberChanges } from './member-changes.ts';
import { groupOf } from './org-groups.ts';

/** What protects the owners of an organization: they alone make and unmake owners, and one stays (G-SYS-06). */
export class Owners {
  readonly #ctx: Ctx;
  readonly #access: Access;
  readonly #changes: MemberChanges;

  constructor(ctx: Ctx, parts: { access: Access; changes: MemberChanges }) {
    this.#ctx = ctx;
    this.#access = parts.access;
    this.#changes = parts.changes;
  }

  /** An administrator who could do this would take the organization over. */
  async requireOwner(caller: Caller, orgId: string): Promise<void> {
    if (isTrusted(caller)) return;
    if ((await this.#access.levels(caller, orgId)).orgs.get(orgId) !== 'owner')
      throw this.#ctx.problem('owner_required', { detail: 'Ask an owner of the organization.' });
  }

  /** Only under the organization's lock: two owners who leave at once must not both see the other. */
  async requireOther(caller: Caller, orgId: string, userId: string): Promise<void> {
    await this.requireOwner(caller, orgId);
    const query = { groups: groupOf(orgId, 'owner'), limit: 2 };
    const { items } = await this.#changes.ask(signal =>
      this.#ctx.services.identity.membersOf({ query, targetEnvId: SYSTEM.envId, signal }),
    );
    if (items.every(({ user_id }) => user_id === userId))
      throw this.#ctx.problem('last_owner', { detail: 'Make somebody else an owner first.' });
  }
}
