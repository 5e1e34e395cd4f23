import { type RequestOf, SYSTEM } from '@platform/sdk';
import type { Contract, Ctx } from '../context.ts';
import { BUILT_IN, PLATFORM_ADMIN } from './effective-access.ts';
import { canonicalScope } from './scope-name.ts';

interface Holder {
  readonly user_id: string;
  readonly email: string;
  readonly display_name: string | null;
  readonly via: string[];
}

/** The access model read backwards: from a scope to the people who hold it, and the roles and groups that give it to them. */
export class ScopeHolders {
  readonly #ctx: Ctx;

  constructor(ctx: Ctx) {
    this.#ctx = ctx;
  }

  /** Ordered by person; a cursor is the last person of the page before. */
  async list({ params, query }: RequestOf<Contract, 'scopeHolders'>) {
    const { env_id: envId } = query;
    const scope = canonicalScope(params.scope);
    const roles = await this.#rolesGiving(scope, envId);
    const administrators = await this.#heldByAdministrators(scope, envId);
    const spec = { list: `holders ${envId} ${scope}`, order: { 'u.user_id': 'id' }, ascending: true } as const;
    return this.#ctx.page(
      query,
      spec,
      ({ where, order, limit }) => this.#ctx.db.sql<Holder[]>`
      with recursive granting(env_id, role) as (
        select ${envId}::uuid, unnest(${roles}::text[])
        union select ${SYSTEM.envId}::uuid, role from role_scopes where ${administrators} and env_id = ${SYSTEM.envId}
          and scope in (${PLATFORM_ADMIN}, ${`platform:${PLATFORM_ADMIN}`})
        union select n.env_id, n.role from role_nesting n join granting on granting.env_id = n.env_id and granting.role = n.child),
      groups(env_id, name) as (
        select g.env_id, g.group_name from group_roles g join granting on granting.env_id = g.env_id and granting.role = g.role
        union select n.child_env_id, n.child_group from group_nesting n join groups on groups.env_id = n.env_id
          and groups.name = n.group_name),
      held(user_id, via) as (
        select m.user_id, 'group:' || groups.name from group_members m join groups on groups.env_id = m.env_id
          and groups.name = m.group_name
        union select r.user_id, 'role:' || r.role from user_roles r join granting on granting.env_id = r.env_id and granting.role = r.role)
      select u.user_id, u.email, u.display_name, array_agg(distinct held.via order by held.via) as via from held join users u
        using (user_id)
      where u.status = 'active' and ${where} group by u.user_id order by ${order} limit ${limit}`,
    );
  }

  /** Roles of the realm with the scope in any of its spellings, and the built-in ones to which it is granted. */
  async #rolesGiving(scope: string, envId: string): Promise<string[]> {
    const written = await this.#ctx.db.sql<
      { role: string; scope: string }[]
    >`select role, scope from role_scopes where env_id = ${envId} and right(scope, length(${scope})) = ${scope}`;
    const roles = written.filter(row => canonicalScope(row.scope) === scope).map(({ role }) => role);
    // In the system environment the built-in roles mean membership of some tenant, never rights over the platform itself.
    if (envId === SYSTEM.envId) return roles;
    const levels = new Set((await this.#grants(scope)).map(({ grants }) => grants));
    return [...roles, ...Object.entries(BUILT_IN).flatMap(([role, level]) => (levels.has(level) ? [role] : []))];
  }

  /** The platform's administrators hold in every environment what people can hold at all. */
  async #heldByAdministrators(scope: string, envId: string): Promise<boolean> {
    if (scope === PLATFORM_ADMIN && envId === SYSTEM.envId) return true;
    return (
      this.#ctx.catalog.actions().some(action => !action.machineOnly && canonicalScope(action.scope) === scope) ||
      (await this.#granted(scope)).length > 0
    );
  }

  async #grants(scope: string): Promise<{ grants: string }[]> {
    const declared = this.#ctx.catalog
      .actions()
      .flatMap(action =>
        !action.machineOnly && action.grants && canonicalScope(action.scope) === scope ? [{ grants: action.grants as string }] : [],
      );
    return [...declared, ...(await this.#granted(scope))];
  }

  async #granted(scope: string): Promise<{ grants: string }[]> {
    const rows = await this.#ctx.db.sql<
      { scope: string; grants: string }[]
    >`select scope, grants from vertical_grants where right(scope, length(${scope})) = ${scope}`;
    return rows.filter(row => canonicalScope(row.scope) === scope);
  }
}
