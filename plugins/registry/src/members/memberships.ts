import type { RequestOf } from '@platform/sdk';
import type { Access, Level } from '../tenants/access.ts';
import type { Contract, Ctx } from '../context.ts';

const GROUPS: readonly { name: string; level: Level }[] = [
  { name: 'owners', level: 'owner' },
  { name: 'admins', level: 'admin' },
  { name: 'viewers', level: 'viewer' },
];

/** Members of an organization, live from the identity service (G-SYS-06). */
export class Memberships {
  readonly #ctx: Ctx;
  readonly #access: Access;

  constructor(ctx: Ctx, access: Access) {
    this.#ctx = ctx;
    this.#access = access;
  }

  async list({ params, caller }: RequestOf<Contract, 'listMemberships'>) {
    await this.#access.org(caller, params.org_id);
    const members = new Map<string, { user_id: string; email: string; display_name: string | null; groups: string[]; access: Level; joined_at: string }>();
    for (const { name, level } of GROUPS) {
      const group = `platform:org:${params.org_id}:${name}`;
      const { items } = await this.#ctx.services.identity.groupMembers({ params: { group }, query: { limit: 200 } });
      for (const { user_id, email, display_name, joined_at } of items) {
        const known = members.get(user_id);
        if (known) known.groups.push(group);
        else members.set(user_id, { user_id, email, display_name: display_name ?? null, groups: [group], access: level, joined_at });
      }
    }
    return { items: [...members.values()], next_cursor: null };
  }
}
