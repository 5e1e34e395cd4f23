import { isId, type RequestOf, SYSTEM } from '@platform/sdk';
import { realmOf } from './access-model.ts';
import type { Contract, Ctx } from '../context.ts';
import { canonicalScope } from './scope-name.ts';

/** What a level of the built-in environment roles stands for in the declarations of services (day-one, Plugins). */
export const BUILT_IN: Readonly<Record<string, 'read' | 'write' | 'admin'>> = {
  'platform:env:viewer': 'read',
  'platform:env:admin': 'write',
  'platform:env:owner': 'admin',
};
export const PLATFORM_ADMIN = 'sys:sys:admin';

/** Where the parts of a tenant's group name begin: people may be in thousands, and the parts have one length each. */
const [TENANT_KIND, TENANT_ID, TENANT_LEVEL] = [9, 13, 50];
const TENANT_LEVELS = (['org', 'env'] as const).flatMap(kind =>
  (['owners', 'admins', 'viewers'] as const).map(level => ({ before: `platform:${kind}:`, level })),
);

/** Live answers about people: groups, roles, and the closure of everything they may do in an environment. Nothing is cached here. */
export class EffectiveAccess {
  readonly #ctx: Ctx;

  constructor(ctx: Ctx) {
    this.#ctx = ctx;
  }

  async groups({ params }: RequestOf<Contract, 'userGroups'>) {
    const userId = params.user_id.trim();
    if (userId === '') throw this.#ctx.problem('user_id_missing');
    return { user_id: userId, groups: await this.groupsOf(userId), as_of: this.#ctx.clock.now().toISOString() };
  }

  /** The groups of tenants alone, said once whatever realms they are in: somebody may be in thousands. */
  async tenants({ params, query }: RequestOf<Contract, 'tenantsOf'>) {
    const userId = params.user_id.trim();
    if (userId === '') throw this.#ctx.problem('user_id_missing');
    const only = query.tenants?.split(',').flatMap(id => TENANT_LEVELS.map(({ before, level }) => `${before}${id}:${level}`));
    const [row] = await this.#ctx.db.sql<{ names: string | null }[]>`
      with recursive held(env_id, name) as (${this.#held(isId(userId) ? userId : null)})
      select string_agg(name, ',') as names from held
        where ${
          only
            ? this.#ctx.db.sql`name = any(${only}::text[])`
            : this.#ctx.db.sql`(name ^@ 'platform:org:'
        or name ^@ 'platform:env:')`
        }`;
    return tenantsIn(new Set(row?.names?.split(',')));
  }

  async scopes({ params, query }: RequestOf<Contract, 'userScopes'>) {
    const userId = params.user_id.trim();
    if (userId === '') throw this.#ctx.problem('user_id_missing');
    return { scopes: [...(await this.scopesOf(userId, query.env_id))].sort(), as_of: this.#ctx.clock.now().toISOString() };
  }

  async members({ params, query }: RequestOf<Contract, 'groupMembers'>) {
    const spec = { list: `group ${params.group}`, order: { 'u.user_id': 'id' }, ascending: true } as const;
    return this.#ctx.page(
      query,
      spec,
      ({ where, order, limit }) => this.#ctx.db.sql<{ user_id: string; email: string; display_name: string | null; joined_at: string }[]>`
      select u.user_id, u.email, u.display_name, min(m.joined_at) as joined_at from group_members m join users u using (user_id)
      where m.group_name = ${params.group} and ${where} group by u.user_id order by ${order} limit ${limit}`,
    );
  }

  /** Members of several groups, each person once, in the order of their ids: a page never shifts under somebody who joins or leaves. */
  async membersOf({ query, headers }: RequestOf<Contract, 'membersOf'>) {
    const envId = realmOf(this.#ctx, { headers });
    const { user_id: only = null, groups } = query;
    const spec = { list: `members ${envId} ${groups}`, order: { 'u.user_id': 'id' }, ascending: true } as const;
    return this.#ctx.page(
      query,
      spec,
      ({ where, order, limit }) => this.#ctx.db.sql<
        { user_id: string; email: string; display_name: string | null; groups: string[]; joined_at: string }[]
      >`
      select u.user_id, u.email, u.display_name, array_agg(m.group_name order by m.group_name) as groups, min(m.joined_at) as joined_at
      from group_members m join users u using (user_id)
      where m.env_id = ${envId} and m.group_name = any(${groups.split(',')}::text[])
        and (${only}::uuid is null or m.user_id = ${only}::uuid) and ${where}
      group by u.user_id order by ${order} limit ${limit}`,
    );
  }

  async groupsOf(userId: string): Promise<{ name: string; env_id: string }[]> {
    if (!isId(userId)) return [];
    const rows = await this.#ctx.db.sql<{ name: string; env_id: string }[]>`
      with recursive held(env_id, name) as (${this.#held(userId)})
      select name, env_id from held order by name, env_id`;
    return [...rows];
  }

  /** Groups of a person, and the groups those are nested into: the terms of a recursive `held(env_id, name)`. */
  #held(userId: string | null) {
    return this.#ctx.db.sql`
      select env_id, group_name from group_members where user_id = ${userId}
      union select n.env_id, n.group_name from held cross join lateral (select env_id, group_name from group_nesting
        where child_env_id = held.env_id and child_group = held.name offset 0) n`;
  }

  /**
   * Roles directly, through groups and through nesting; their scopes; what verticals grant to built-in roles; everything for the platform's
   * administrators.
   */
  async scopesOf(userId: string, envId: string): Promise<ReadonlySet<string>> {
    const realm = await this.#realmScopes(userId, envId);
    const admin =
      envId === SYSTEM.envId
        ? realm.scopes.has(PLATFORM_ADMIN)
        : (await this.#realmScopes(userId, SYSTEM.envId)).scopes.has(PLATFORM_ADMIN);
    const scopes = new Set(realm.scopes);
    // In the system environment the built-in roles mean membership of some tenant, never rights over the platform itself.
    const levels = new Set(envId === SYSTEM.envId ? [] : realm.roles.flatMap(role => (BUILT_IN[role] ? [BUILT_IN[role]] : [])));
    if (levels.size === 0 && !admin) return scopes;
    for (const { scope, grants, machineOnly } of this.#ctx.catalog.actions()) {
      if (!machineOnly && (admin || (grants && levels.has(grants)))) scopes.add(canonicalScope(scope));
    }
    const granted = await this.#ctx.db.sql<
      { scope: string; grants: 'read' | 'write' | 'admin' }[]
    >`select scope, grants from vertical_grants`;
    for (const { scope, grants } of granted) if (admin || levels.has(grants)) scopes.add(canonicalScope(scope));
    return scopes;
  }

  /** Whether a person may be in an environment at all: any live role or group there (C40). */
  async hasAccess(userId: string, envId: string): Promise<boolean> {
    return (await this.scopesOf(userId, envId)).size > 0;
  }

  /**
   * Every step is an index look-up from what the person holds (`offset 0`): what others hold in the realm, thousands in the system's, is
   * not read.
   */
  async #realmScopes(userId: string, envId: string): Promise<{ scopes: ReadonlySet<string>; roles: readonly string[] }> {
    if (!isId(userId)) return { scopes: new Set(), roles: [] };
    const rows = await this.#ctx.db.sql<{ role: string; scope: string | null }[]>`
      with recursive groups(env_id, name) as (
        select env_id, group_name from group_members where user_id = ${userId}
        union select n.env_id, n.group_name from groups cross join lateral (select env_id, group_name from group_nesting
          where child_env_id = groups.env_id and child_group = groups.name offset 0) n),
      held(role) as (
        select role from user_roles where env_id = ${envId} and user_id = ${userId}
        union select g.role from groups cross join lateral (select role from group_roles where env_id = groups.env_id
          and group_name = groups.name offset 0) g where groups.env_id = ${envId}
        union select n.child from role_nesting n join held on n.role = held.role where n.env_id = ${envId})
      select held.role, s.scope from held left join role_scopes s on s.env_id = ${envId} and s.role = held.role
      where exists (select 1 from users where user_id = ${userId} and status = 'active')`;
    return {
      scopes: new Set(rows.flatMap(({ scope }) => (scope ? [canonicalScope(scope)] : []))),
      roles: [...new Set(rows.map(({ role }) => role))],
    };
  }
}

/** Ids of the tenants whose groups of each level are among these names: `platform:org:<id>:owners` and the like. */
function tenantsIn(names: Iterable<string>) {
  const none = () => ({ owners: [] as string[], admins: [] as string[], viewers: [] as string[] });
  const found = { org: none(), env: none() };
  for (const name of names) {
    const kind = name.slice(TENANT_KIND, TENANT_ID - 1);
    const id = name.slice(TENANT_ID, TENANT_LEVEL - 1);
    const level = name.slice(TENANT_LEVEL);
    if ((kind !== 'org' && kind !== 'env') || !isId(id) || name[TENANT_LEVEL - 1] !== ':') continue;
    if (level === 'owners' || level === 'admins' || level === 'viewers') found[kind][level].push(id);
  }
  return found;
}
