import { type RequestOf, SYSTEM } from '@platform/sdk';
import { realmsReachedFrom } from './access-model.ts';
import { bumpAccess, bumpPeople } from './access-version.ts';
import type { Contract, Ctx, IdentityTx } from './context.ts';
import { isId } from './ids.ts';
import type { Realms } from './realms.ts';

const VIEWER = ['sys:read', 'audit:read'];
const ADMIN = ['sys:env:admin', 'sys:app:admin', 'sys:services:admin', 'sys:memberships:admin', 'sys:instances:read'];
const OWNER = ['sys:org:admin'];
const LEVELS = [
  { group: 'viewers', role: 'viewer', scopes: VIEWER, contains: undefined },
  { group: 'admins', role: 'admin', scopes: ADMIN, contains: 'viewer' },
  { group: 'owners', role: 'owner', scopes: OWNER, contains: 'admin' },
] as const;

/** From here on one version for everybody is cheaper than one each. */
const MANY = 100;

const groupNames = (template: 'org' | 'env', subject: string): string[] => LEVELS.map(({ group }) => `platform:${template}:${subject}:${group}`);

/** The access model of a new organization or environment, whole or not at all, and the same when repeated (G-SYS-03). */
export class AccessTemplates {
  readonly #ctx: Ctx;
  readonly #realms: Realms;

  constructor(ctx: Ctx, realms: Realms) {
    this.#ctx = ctx;
    this.#realms = realms;
  }

  async provision({ body }: RequestOf<Contract, 'provisionAccess'>) {
    const { template, org_id: orgId, env_id: envId, owner, host } = body;
    if (template === 'env' && !envId) throw this.#ctx.problem('name_invalid', { detail: 'The access model of an environment needs its env_id.' });
    const subject = template === 'org' ? orgId : (envId as string);
    const realms = template === 'org' ? [SYSTEM.envId] : [SYSTEM.envId, subject];
    const groups = groupNames(template, subject);
    const owners = groups[2] as string;
    const touched = await this.#ctx.db.tx(async tx => {
      // One after the other on the connection, and waited for once.
      await Promise.all([
        owner ? this.#requirePerson(tx, owner) : undefined,
        ...this.#levels(tx, realms, template, groups),
        owner ? tx.sql`insert into group_members (env_id, group_name, user_id) select unnest(${realms}::uuid[]), ${owners}, ${owner} on conflict do nothing` : undefined,
        // Owners of the organization own its environments.
        template === 'env'
          ? tx.sql`
              insert into group_nesting (env_id, group_name, child_env_id, child_group)
              select realm, ${owners}, env_id, name from user_groups, unnest(${realms}::uuid[]) realm where env_id = ${SYSTEM.envId} and name = ${`platform:org:${orgId}:owners`} on conflict do nothing`
          : undefined,
        // In the same transaction: an environment is never there without its door (registry rule 5).
        template === 'env' && host !== undefined ? this.#realms.write(tx.sql, { env_id: subject, org_id: orgId, host: host.toLowerCase() }) : undefined,
      ]);
      const [members, ...reached] = await Promise.all([this.#membersBelow(tx, realms, owners), ...realms.map(realm => realmsReachedFrom(tx, realm, owners))]);
      return { members, realms: reached.flat() };
    });
    if (host !== undefined) this.#realms.forget();
    // A new tenant changes what its owners may do, and nobody else: other people's closures stand.
    if (touched.members.length < MANY) await bumpPeople(this.#ctx, touched.members);
    else await bumpAccess(this.#ctx, [...realms, ...touched.realms]);
    return { groups };
  }

  /** Groups of the access model that are there; none when it was never made, or removed. */
  async describe({ params }: RequestOf<Contract, 'describeAccess'>) {
    const names = groupNames(this.#template(params.template), params.id);
    const found = await this.#ctx.db.sql<{ name: string }[]>`select name from user_groups where env_id = ${SYSTEM.envId} and name = any(${names}::text[]) order by name`;
    return { groups: found.map(({ name }) => name) };
  }

  /** Takes an access model away with everything that hung on it, an environment's realm included. A repeat finds nothing to do. */
  async remove({ params }: RequestOf<Contract, 'removeAccess'>): Promise<void> {
    const template = this.#template(params.template);
    if (!isId(params.id) || params.id === SYSTEM.envId || params.id === SYSTEM.orgId)
      throw this.#ctx.problem('name_invalid', { detail: 'Name a tenant by its id; the access model of the platform stays.' });
    const names = groupNames(template, params.id);
    const realms = template === 'org' ? [SYSTEM.envId] : [SYSTEM.envId, params.id];
    const touched = await this.#ctx.db.tx(async tx => {
      const reached = new Set<string>(realms);
      for (const realm of realms) for (const name of names) for (const other of await realmsReachedFrom(tx, realm, name)) reached.add(other);
      await tx.sql`delete from user_groups where env_id = ${SYSTEM.envId} and name = any(${names}::text[])`;
      if (template === 'env') {
        await tx.sql`delete from user_groups where env_id = ${params.id}`;
        await tx.sql`delete from roles where env_id = ${params.id}`;
        await tx.sql`delete from realms where env_id = ${params.id}`;
      }
      return reached;
    });
    if (template === 'env') this.#realms.forget();
    await bumpAccess(this.#ctx, touched);
  }

  #template(text: string): 'org' | 'env' {
    if (text !== 'org' && text !== 'env') throw this.#ctx.problem('name_invalid', { detail: 'The template is org or env.' });
    return text;
  }

  /** Roles, nesting and groups of every level in every realm. What stands already is not touched, so that concurrent creates do not wait for each other. */
  #levels(tx: IdentityTx, realms: readonly string[], template: 'org' | 'env', groups: readonly string[]): Promise<unknown>[] {
    const rows = realms.flatMap(env_id => LEVELS.map(({ role, scopes, contains }, index) => ({ env_id, role: `platform:${template}:${role}`, scopes, contains, group: groups[index] as string })));
    const scopes = rows.flatMap(({ env_id, role, scopes: held }) => held.map(scope => ({ env_id, role, scope })));
    const nesting = rows.flatMap(({ env_id, role, contains }) => (contains ? [{ env_id, role, child: `platform:${template}:${contains}` }] : []));
    const { sql } = tx;
    return [
      sql`insert into roles (env_id, name) select env_id, role from jsonb_to_recordset(${sql.json(rows)}) as row(env_id uuid, role text) on conflict do nothing`,
      sql`insert into role_scopes (env_id, role, scope) select * from jsonb_to_recordset(${sql.json(scopes)}) as row(env_id uuid, role text, scope text) on conflict do nothing`,
      sql`delete from role_scopes where env_id = any(${realms}::uuid[]) and role = any(${rows.map(({ role }) => role)}::text[]) and not (${sql.json(Object.fromEntries(rows.map(({ role, scopes: held }) => [role, held])))}::jsonb -> role ? scope)`,
      sql`insert into role_nesting (env_id, role, child) select * from jsonb_to_recordset(${sql.json(nesting)}) as row(env_id uuid, role text, child text) on conflict do nothing`,
      sql`
      insert into user_groups (group_id, env_id, name) select * from jsonb_to_recordset(${sql.json(rows.map(({ env_id, group }) => ({ group_id: this.#ctx.platform.newId(), env_id, name: group })))})
        as row(group_id uuid, env_id uuid, name text) on conflict do nothing`,
      sql`insert into group_roles (env_id, group_name, role) select env_id, "group", role from jsonb_to_recordset(${sql.json(rows)}) as row(env_id uuid, "group" text, role text) on conflict do nothing`,
    ];
  }

  /** People who are in a group of these realms, directly or through a group below it; {@link MANY} at most. */
  async #membersBelow(tx: IdentityTx, realms: readonly string[], group: string): Promise<string[]> {
    const rows = await tx.sql<{ user_id: string }[]>`
      with recursive below(env_id, name) as (
        select unnest(${realms}::uuid[]), ${group}::text
        union select n.child_env_id, n.child_group from below cross join lateral (select child_env_id, child_group from group_nesting where env_id = below.env_id and group_name = below.name offset 0) n)
      select distinct user_id from below cross join lateral (select user_id from group_members m where m.env_id = below.env_id and m.group_name = below.name offset 0) m limit ${MANY}`;
    return rows.map(({ user_id }) => user_id);
  }

  async #requirePerson(tx: IdentityTx, userId: string): Promise<void> {
    const [found] = await tx.sql<object[]>`select 1 from users where user_id = ${userId}`;
    if (!found) throw this.#ctx.problem('user_not_found', { detail: 'The owner has no account.' });
  }
}
