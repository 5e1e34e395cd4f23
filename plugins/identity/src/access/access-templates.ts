import { type RequestOf, SYSTEM } from '@platform/sdk';
import { realmsReachedFrom } from './access-model.ts';
import { bump, bumpAccess } from './access-version.ts';
import type { Contract, Ctx, IdentityTx } from '../context.ts';
import type { Realms } from '../realms.ts';

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

const groupNames = (template: 'org' | 'env', subject: string): string[] =>
  LEVELS.map(({ group }) => `platform:${template}:${subject}:${group}`);

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
    if (template === 'env' && !envId)
      throw this.#ctx.problem('name_invalid', { detail: 'The access model of an environment needs its env_id.' });
    const subject = template === 'org' ? orgId : (envId as string);
    const realms = template === 'org' ? [SYSTEM.envId] : [SYSTEM.envId, subject];
    const groups = groupNames(template, subject);
    const touched = await this.#ctx.db
      .tx(async tx => {
        // One after the other on the connection, and waited for once.
        const [, members] = await Promise.all([
          this.#model(tx, { template, orgId, realms, groups, owner }),
          this.#membersBelow(tx, template, realms, groups),
          // In the same transaction: an environment is never there without its door (registry rule 5).
          template === 'env' && host !== undefined
            ? this.#realms.write(tx.sql, { env_id: subject, org_id: orgId, host: host.toLowerCase() })
            : undefined,
        ]);
        // Who could do all of it before can do nothing new in the system's realm: what is known of such a person there stands.
        const changed = members.filter(({ held }) => !held).map(({ user_id }) => user_id);
        const reached =
          members.length < MANY
            ? []
            : (await Promise.all(realms.flatMap(realm => groups.map(group => realmsReachedFrom(tx, realm, group))))).flat();
        return { members: changed, everybody: members.length >= MANY, realms: reached };
      })
      .catch(cause => {
        if ((cause as { constraint_name?: string }).constraint_name === 'group_members_user_id_fkey')
          throw this.#ctx.problem('user_not_found', { cause, detail: 'The owner has no account.' });
        throw cause;
      });
    if (host !== undefined) await this.#realms.changed();
    // A new tenant changes what the members of its organization may do, and nobody else: other people's closures stand.
    if (touched.everybody) await bumpAccess(this.#ctx, [...realms, ...touched.realms]);
    // But for the environment's own realm: somebody may have asked about it before it had anything in it (REG-016).
    else await bump(this.#ctx, template === 'env' ? [subject] : [], touched.members);
    return { groups };
  }

  /** Groups of the access model that are there; none when it was never made, or removed. */
  async describe({ params }: RequestOf<Contract, 'describeAccess'>) {
    const names = groupNames(params.template, params.id);
    const found = await this.#ctx.db.sql<
      { name: string }[]
    >`select name from user_groups where env_id = ${SYSTEM.envId} and name = any(${names}::text[]) order by name`;
    return { groups: found.map(({ name }) => name) };
  }

  /** Takes an access model away with everything that hung on it, an environment's realm included. A repeat finds nothing to do. */
  async remove({ params }: RequestOf<Contract, 'removeAccess'>): Promise<void> {
    const { template } = params;
    if (params.id === SYSTEM.envId || params.id === SYSTEM.orgId)
      throw this.#ctx.problem('name_invalid', { detail: 'Name a tenant by its id; the access model of the platform stays.' });
    const names = groupNames(template, params.id);
    const realms = template === 'org' ? [SYSTEM.envId] : [SYSTEM.envId, params.id];
    const touched = await this.#ctx.db.tx(async tx => {
      const reached = new Set<string>(realms);
      for (const realm of realms)
        for (const name of names) for (const other of await realmsReachedFrom(tx, realm, name)) reached.add(other);
      await tx.sql`delete from user_groups where env_id = ${SYSTEM.envId} and name = any(${names}::text[])`;
      if (template === 'env') {
        await tx.sql`delete from user_groups where env_id = ${params.id}`;
        await tx.sql`delete from roles where env_id = ${params.id}`;
        await tx.sql`delete from realms where env_id = ${params.id}`;
      }
      return reached;
    });
    if (template === 'env') await this.#realms.changed();
    await bumpAccess(this.#ctx, touched);
  }

  /**
   * Roles, nesting and groups of every level in every realm, and the owner's membership, in one statement; whoever joins them may enter the
   * console (D-02). What stands already is not touched, so that concurrent creates do not wait for each other.
   */
  #model(
    tx: IdentityTx,
    {
      template,
      orgId,
      realms,
      groups,
      owner,
    }: { template: 'org' | 'env'; orgId: string; realms: readonly string[]; groups: readonly string[]; owner: string | undefined },
  ) {
    const rows = realms.flatMap(env_id =>
      LEVELS.map(({ role, scopes, contains }, index) => ({
        env_id,
        role: `platform:${template}:${role}`,
        scopes,
        contains: contains ? `platform:${template}:${contains}` : null,
        group_id: this.#ctx.platform.newId(),
        group: groups[index] as string,
      })),
    );
    const owners = groups[2] as string;
    // Who has a level in the organization has it in its environments (F-14).
    const above = template === 'env' ? groupNames('org', orgId) : [];
    const nesting = tx.sql.json(above.map((name, index) => ({ group: groups[index], above: name })));
    return tx.sql`
      with asked as materialized (
        select * from jsonb_to_recordset(${tx.sql.json(rows)}) as row(env_id uuid, role text, scopes text[], contains text, group_id uuid,
          "group" text)),
      made_roles as (insert into roles (env_id, name) select env_id, role from asked on conflict do nothing),
      made_scopes as (insert into role_scopes (env_id, role, scope) select env_id, role, unnest(scopes) from asked on conflict do nothing),
      other_scopes as (
        delete from role_scopes held where env_id = any(${realms}::uuid[]) and role = any(${rows.map(({ role }) => role)}::text[])
          and not exists (select 1 from asked where asked.env_id = held.env_id and asked.role = held.role
            and held.scope = any(asked.scopes))),
      made_gate as (
        insert into group_nesting (env_id, group_name, child_env_id, child_group)
        select gate.env_id, gate.name, asked.env_id, asked."group" from asked
        join user_groups gate on gate.env_id = asked.env_id and gate.env_id = ${SYSTEM.envId} and gate.name = ${SYSTEM.consoleGroup}
          on conflict do nothing),
      made_nesting as (insert into role_nesting (env_id, role, child) select env_id, role, contains from asked where contains is not null
        on conflict do nothing),
      made_groups as (insert into user_groups (group_id, env_id, name) select group_id, env_id, "group" from asked on conflict do nothing),
      made_group_roles as (insert into group_roles (env_id, group_name, role) select env_id, "group", role from asked
        on conflict do nothing),
      made_members as (
        insert into group_members (env_id, group_name, user_id)
        select env_id, "group", ${owner ?? null}::uuid from asked where "group" = ${owners} and ${owner ?? null}::uuid is not null
          on conflict do nothing)
      insert into group_nesting (env_id, group_name, child_env_id, child_group)
      select asked.env_id, asked."group", above.env_id, above.name
      from asked join jsonb_to_recordset(${nesting}) as nested("group" text, above text) using ("group")
      join user_groups above on above.env_id = ${SYSTEM.envId} and above.name = nested.above on conflict do nothing`;
  }

  /**
   * People who are in a group of these realms, directly or through a group below it; {@link MANY} at most. `held`: another group of theirs
   * gives them the role in the system's realm too. It is kept from going before this commits, and who takes it away tells everybody after
   * that; one that is going counts for nothing.
   */
  #membersBelow(
    tx: IdentityTx,
    template: 'org' | 'env',
    realms: readonly string[],
    groups: readonly string[],
  ): Promise<{ user_id: string; held: boolean }[]> {
    const levels = tx.sql.json(LEVELS.map(({ role }, index) => ({ level: groups[index], role: `platform:${template}:${role}` })));
    return tx.sql<{ user_id: string; held: boolean }[]>`
      with recursive below(env_id, name, level, role) as (
        select env_id, level, level, role from (values (${realms[0]}::uuid), (${realms.at(-1)}::uuid)) realm(env_id)
          cross join jsonb_to_recordset(${levels}) as asked(level text, role text)
        union select n.child_env_id, n.child_group, below.level, below.role from below cross
          join lateral (select child_env_id, child_group from group_nesting where env_id = below.env_id
          and group_name = below.name offset 0) n),
      people as (
        select distinct user_id, level, role from below cross join lateral (select user_id from group_members m
          where m.env_id = below.env_id and m.group_name = below.name offset 0) m limit ${MANY})
      select user_id, other.held is not null as held from people left join lateral (
        select true as held from group_members m join group_roles r on r.env_id = m.env_id and r.group_name = m.group_name
          and r.role = people.role
        where m.user_id = people.user_id and m.env_id = ${SYSTEM.envId} and m.group_name <> people.level
          limit 1 for key share of m skip locked) other on true`;
  }
}
