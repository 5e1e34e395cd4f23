import { SYSTEM } from '@platform/sdk';
import type { Ctx, IdentityTx } from '../context.ts';
import { PLATFORM_ADMIN } from './effective-access.ts';
import type { Person } from '../people/person.ts';

const OWNER = 'platform:env:owner';

/** Keeps one person in every environment who can administer it: the platform's administrators in the system's, owners in a tenant's. */
export class LastAdministrator {
  readonly #ctx: Ctx;

  constructor(ctx: Ctx) {
    this.#ctx = ctx;
  }

  /**
   * In the transaction that closes or removes an account, before it does: of two who go at once, the second sees that the first is gone.
   */
  async requireOther({ sql }: IdentityTx, { env_id: envId, user_id: userId }: Pick<Person, 'env_id' | 'user_id'>): Promise<void> {
    // The person first, as everybody does who changes an account: nobody waits for somebody who waits for them.
    await sql`select 1 from users where user_id = ${userId} for update`;
    await sql`select pg_advisory_xact_lock(hashtextextended(${`platform:auth:administrators:${envId}`}, 0))`;
    const administering =
      envId === SYSTEM.envId
        ? sql`select role from role_scopes where env_id = ${envId} and scope in (${PLATFORM_ADMIN}, ${`platform:${PLATFORM_ADMIN}`})`
        : sql`select name from roles where env_id = ${envId} and name = ${OWNER}`;
    const [row] = await sql<[{ own: boolean | null; other: boolean | null }]>`
      with recursive granting(role) as (
        ${administering}
        union select n.role from role_nesting n join granting on n.child = granting.role where n.env_id = ${envId}),
      groups(env_id, name) as (
        select g.env_id, g.group_name from group_roles g join granting using (role) where g.env_id = ${envId}
        union select n.child_env_id, n.child_group from group_nesting n join groups on groups.env_id = n.env_id
          and groups.name = n.group_name),
      held(user_id) as (
        select m.user_id from group_members m join groups on groups.env_id = m.env_id and groups.name = m.group_name
        union select r.user_id from user_roles r join granting using (role) where r.env_id = ${envId})
      select bool_or(u.user_id = ${userId} and u.status <> 'disabled') as own, bool_or(u.user_id <> ${userId}
        and u.status = 'active') as other from held join users u using (user_id)`;
    if (row.own && !row.other)
      throw this.#ctx.problem('last_administrator', { detail: 'Make somebody else an administrator of this environment first.' });
  }
}
