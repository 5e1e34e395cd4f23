import { type Caller, isId, type RequestOf } from '@platform/sdk';
import { bumpAccess } from './access-version.ts';
import type { Contract, Ctx, IdentityTx } from '../context.ts';

type HeaderRequest = { readonly headers: Readonly<Record<string, string | undefined>> };

/**
 * The membership verbs: roles, nesting, groups, members. Each may be repeated without effect; a realm is an environment (G-AUTH-01). What
 * changes is in the audit trail with it.
 */
export class AccessModel {
  readonly #ctx: Ctx;

  constructor(ctx: Ctx) {
    this.#ctx = ctx;
  }

  async putRole({ params, body, headers, caller }: RequestOf<Contract, 'putRole'>) {
    const envId = this.#realm({ headers });
    const created = await this.#change(envId, async tx => {
      const { made, added, removed } = await this.writeRole(tx, envId, params.role, body.scopes, body.description);
      if (made || added.length > 0 || removed.length > 0)
        await note(tx, { envId, caller }, `auth.role.${made ? 'created' : 'changed'}`, { role: params.role }, { added, removed });
      return made;
    });
    return { name: params.role, env_id: envId, scopes: [...body.scopes], created };
  }

  async nestRole({ params, headers, caller }: RequestOf<Contract, 'nestRole'>) {
    const envId = this.#realm({ headers });
    await this.#change(envId, async tx => {
      if (await this.writeNesting(tx, envId, params.role, params.child))
        await note(tx, { envId, caller }, 'auth.role.nested', { role: params.role }, { child: params.child });
    });
    return { role: params.role, child: params.child };
  }

  async putGroup({ params, body, headers, caller }: RequestOf<Contract, 'putGroup'>) {
    const envId = this.#realm({ headers });
    return this.#change(envId, async tx => {
      const group = await this.writeGroup(tx, envId, params.group, body.description);
      if (group.created) await note(tx, { envId, caller }, 'auth.group.created', { group: params.group });
      return group;
    });
  }

  /** Takes it away from groups and people alike; one that is gone already is no fault. */
  async deleteRole({ params, headers, caller }: RequestOf<Contract, 'deleteRole'>): Promise<void> {
    const envId = this.#realm({ headers });
    this.#requireOwn(params.role);
    await this.#change(envId, async tx => {
      const gone = await tx.sql<object[]>`delete from roles where env_id = ${envId} and name = ${params.role} returning 1`;
      if (gone.length > 0) await note(tx, { envId, caller }, 'auth.role.deleted', { role: params.role });
    });
  }

  async deleteGroup({ params, headers, caller }: RequestOf<Contract, 'deleteGroup'>): Promise<void> {
    const envId = this.#realm({ headers });
    this.#requireOwn(params.group);
    const touched = await this.#ctx.db.tx(async tx => {
      const reached = await realmsReachedFrom(tx, envId, params.group);
      const gone = await tx.sql<object[]>`delete from user_groups where env_id = ${envId} and name = ${params.group} returning 1`;
      if (gone.length > 0) await note(tx, { envId, caller }, 'auth.group.deleted', { group: params.group });
      return reached;
    });
    await bumpAccess(this.#ctx, touched);
  }

  async putGroupRole({ params: { group, role }, headers, caller }: RequestOf<Contract, 'putGroupRole'>) {
    const envId = this.#realm({ headers });
    await this.#change(envId, async tx => {
      await this.#requireGroup(tx, envId, group);
      await this.#requireRole(tx, envId, role);
      const given = await tx.sql<object[]>`
        insert into group_roles ${tx.sql.row({ env_id: envId, group_name: group, role })} on conflict do nothing returning 1`;
      if (given.length > 0) await note(tx, { envId, caller }, 'auth.group.role_given', { group }, { role });
    });
    return { group, role };
  }

  async putGroupMember({ params: { group, user_id }, headers, caller }: RequestOf<Contract, 'putGroupMember'>) {
    const envId = this.#realm({ headers });
    const touched = await this.#ctx.db.tx(async tx => {
      await this.#requireGroup(tx, envId, group);
      await this.#requireUser(tx, user_id);
      const joined = await tx.sql<object[]>`
        insert into group_members ${tx.sql.row({ env_id: envId, group_name: group, user_id })} on conflict do nothing returning 1`;
      if (joined.length > 0) await note(tx, { envId, caller }, 'auth.group.member_added', { group }, { user_id });
      return realmsReachedFrom(tx, envId, group);
    });
    await bumpAccess(this.#ctx, touched);
    return { group, user_id };
  }

  async deleteGroupMember({ params: { group, user_id }, headers, caller }: RequestOf<Contract, 'deleteGroupMember'>): Promise<void> {
    const envId = this.#realm({ headers });
    if (!isId(user_id)) return;
    const touched = await this.#ctx.db.tx(async tx => {
      const gone = await tx.sql<object[]>`
        delete from group_members where env_id = ${envId} and group_name = ${group} and user_id = ${user_id} returning 1`;
      if (gone.length > 0) await note(tx, { envId, caller }, 'auth.group.member_removed', { group }, { user_id });
      return realmsReachedFrom(tx, envId, group);
    });
    await bumpAccess(this.#ctx, touched);
  }

  /** Everything below a name at once: groups of an organization and of its environments are of many realms. */
  async leaveGroups({ params: { user_id }, body, caller }: RequestOf<Contract, 'leaveGroups'>) {
    const { left, touched } = await this.#ctx.db.tx(async tx => {
      const rows = await tx.sql<{ name: string; env_id: string }[]>`
        delete from group_members where user_id = ${user_id} and group_name ^@ any(${[...body.prefixes]}::text[])
          returning group_name as name, env_id`;
      const reached = new Set<string>();
      for (const { name, env_id } of rows) {
        await note(tx, { envId: env_id, caller }, 'auth.group.member_removed', { group: name }, { user_id });
        for (const realm of await realmsReachedFrom(tx, env_id, name)) reached.add(realm);
      }
      return { left: [...rows], touched: reached };
    });
    await bumpAccess(this.#ctx, touched);
    return { left };
  }

  async putUserRole({ params: { user_id, role }, headers, caller }: RequestOf<Contract, 'putUserRole'>) {
    const envId = this.#realm({ headers });
    await this.#change(envId, async tx => {
      await this.#requireUser(tx, user_id);
      await this.#requireRole(tx, envId, role);
      const given = await tx.sql<object[]>`
        insert into user_roles ${tx.sql.row({ env_id: envId, user_id, role })} on conflict do nothing returning 1`;
      if (given.length > 0) await note(tx, { envId, caller }, 'auth.user.role_given', { user: user_id }, { role });
    });
    return { user_id, role };
  }

  async deleteUserRole({ params: { user_id, role }, headers, caller }: RequestOf<Contract, 'deleteUserRole'>): Promise<void> {
    const envId = this.#realm({ headers });
    if (!isId(user_id)) return;
    await this.#change(envId, async tx => {
      const gone = await tx.sql<object[]>`
        delete from user_roles where env_id = ${envId} and user_id = ${user_id} and role = ${role} returning 1`;
      if (gone.length > 0) await note(tx, { envId, caller }, 'auth.user.role_taken', { user: user_id }, { role });
    });
  }

  /** @returns whether the role is new, and which scopes it got and lost. */
  async writeRole(
    tx: IdentityTx,
    envId: string,
    role: string,
    scopes: readonly string[],
    description?: string,
  ): Promise<{ made: boolean; added: string[]; removed: string[] }> {
    const [row] = await tx.sql<{ created: boolean }[]>`
      insert into roles (env_id, name, description) values (${envId}, ${role}, ${description ?? null})
      on conflict (env_id, name) do update set description = coalesce(excluded.description, roles.description)
        returning (xmax = 0) as created`;
    const removed = await tx.sql<{ scope: string }[]>`
      delete from role_scopes where env_id = ${envId} and role = ${role} and not (scope = any(${[...scopes]}::text[])) returning scope`;
    const added = await tx.sql<{ scope: string }[]>`
      insert into role_scopes (env_id, role, scope) select ${envId}, ${role}, unnest(${[...scopes]}::text[]) on conflict do nothing
        returning scope`;
    const names = (rows: readonly { scope: string }[]) => rows.map(({ scope }) => scope).sort();
    return { made: row?.created ?? false, added: names(added), removed: names(removed) };
  }

  /** Refuses a nesting by which a role would contain itself. @returns whether it is new */
  async writeNesting(tx: IdentityTx, envId: string, role: string, child: string): Promise<boolean> {
    await this.#requireRole(tx, envId, role);
    await this.#requireRole(tx, envId, child);
    // One nesting at a time per realm: two halves of a cycle must not pass each other.
    await tx.sql`select pg_advisory_xact_lock(hashtextextended(${`platform:auth:nesting:${envId}`}, 0))`;
    const [cycle] = await tx.sql<object[]>`
      with recursive below(role) as (
        select ${child}::text union select n.child from role_nesting n join below on n.role = below.role where n.env_id = ${envId})
      select 1 from below where role = ${role}`;
    if (cycle) throw this.#ctx.problem('role_cycle', { detail: `${child} already contains ${role}.` });
    const nested = await tx.sql<object[]>`
      insert into role_nesting ${tx.sql.row({ env_id: envId, role, child })} on conflict do nothing returning 1`;
    return nested.length > 0;
  }

  async writeGroup(tx: IdentityTx, envId: string, name: string, description?: string) {
    const [row] = await tx.sql<[{ group_id: string; created: boolean }]>`
      insert into user_groups (group_id, env_id, name, description)
        values (${this.#ctx.platform.newId()}, ${envId}, ${name}, ${description ?? null})
      on conflict (env_id, name) do update set description = coalesce(excluded.description, user_groups.description)
        returning group_id, (xmax = 0) as created`;
    return { group_id: row.group_id, name, env_id: envId, created: row.created };
  }

  async #change<T>(envId: string, work: (tx: IdentityTx) => Promise<T>): Promise<T> {
    const result = await this.#ctx.db.tx(work);
    await bumpAccess(this.#ctx, [envId]);
    return result;
  }

  #realm(request: HeaderRequest): string {
    return realmOf(this.#ctx, request);
  }

  /** Tenants and the console rest on the platform's own names: they go with their tenant, and by nobody's wish. */
  #requireOwn(name: string): void {
    if (name.startsWith('platform:')) throw this.#ctx.problem('access_protected', { detail: `${name} goes with its tenant.` });
  }

  async #requireRole(tx: IdentityTx, envId: string, role: string): Promise<void> {
    const [found] = await tx.sql<object[]>`select 1 from roles where env_id = ${envId} and name = ${role}`;
    if (!found) throw this.#ctx.problem('role_not_found', { detail: `No role ${role} in this realm.` });
  }

  async #requireGroup(tx: IdentityTx, envId: string, group: string): Promise<void> {
    const [found] = await tx.sql<object[]>`select 1 from user_groups where env_id = ${envId} and name = ${group}`;
    if (!found) throw this.#ctx.problem('group_not_found', { detail: `No group ${group} in this realm.` });
  }

  async #requireUser(tx: IdentityTx, userId: string): Promise<void> {
    const [found] = await tx.sql<object[]>`select 1 from users where user_id = ${userId}`;
    if (!found) throw this.#ctx.problem('user_not_found', { detail: `No person ${userId}.` });
  }
}

/** What of the access model another entry of the trail is about: who can do what, and who made it so; a repeat changes nothing and leaves none. */
export const note = (
  tx: IdentityTx,
  { envId, caller }: { readonly envId: string; readonly caller: Caller },
  action: string,
  about: { readonly role: string } | { readonly group: string } | { readonly user: string },
  details?: Readonly<Record<string, unknown>>,
): Promise<void> => {
  const [[type, id]] = Object.entries(about) as [[string, string]];
  return tx.audit({ action, envId, caller, resource: { type, id }, ...(details ? { details } : {}) });
};

/** The realm a caller names (G-AUTH-01). */
export function realmOf(ctx: Ctx, { headers }: HeaderRequest): string {
  const envId = headers['x-platform-target-env-id'];
  if (!isId(envId)) throw ctx.problem('target_env_missing', { detail: 'Name the realm in X-Platform-Target-Env-Id.' });
  return envId;
}

/**
 * Realms in which membership of a group counts: its own, and those of every group it is nested into. `offset 0` keeps every step an index
 * look-up, even where the planner has no statistics yet.
 */
export async function realmsReachedFrom(tx: IdentityTx, envId: string, group: string): Promise<string[]> {
  const rows = await tx.sql<{ env_id: string }[]>`
    with recursive up(env_id, group_name) as (
      select ${envId}::uuid, ${group}::text
      union select n.env_id, n.group_name from up cross join lateral (select env_id, group_name from group_nesting
        where child_env_id = up.env_id and child_group = up.group_name offset 0) n)
    select distinct env_id from up`;
  return rows.map(row => row.env_id);
}
