import { type RequestOf, SYSTEM } from '@platform/sdk';
import { type AccessModel, realmsReachedFrom } from './access-model.ts';
import { bumpAccess } from './access-version.ts';
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

const groupNames = (template: 'org' | 'env', subject: string): string[] => LEVELS.map(({ group }) => `platform:${template}:${subject}:${group}`);

/** The access model of a new organization or environment, whole or not at all, and the same when repeated (G-SYS-03). */
export class AccessTemplates {
  readonly #ctx: Ctx;
  readonly #model: AccessModel;
  readonly #realms: Realms;

  constructor(ctx: Ctx, { model, realms }: { model: AccessModel; realms: Realms }) {
    this.#ctx = ctx;
    this.#model = model;
    this.#realms = realms;
  }

  async provision({ body }: RequestOf<Contract, 'provisionAccess'>) {
    const { template, org_id: orgId, env_id: envId, owner } = body;
    const subject = template === 'org' ? orgId : (envId ?? orgId);
    const realms = template === 'org' ? [SYSTEM.envId] : [SYSTEM.envId, subject];
    const groups = groupNames(template, subject);
    const touched = await this.#ctx.db.tx(async tx => {
      if (owner) await this.#requirePerson(tx, owner);
      const reached = new Set<string>(realms);
      for (const realm of realms) {
        await this.#level(tx, realm, template, subject);
        const owners = groups[2] as string;
        if (owner) await tx.sql`insert into group_members ${tx.sql.row({ env_id: realm, group_name: owners, user_id: owner })} on conflict do nothing`;
        if (template === 'env') {
          // Owners of the organization own its environments.
          await tx.sql`
            insert into group_nesting (env_id, group_name, child_env_id, child_group)
            select ${realm}, ${owners}, env_id, name from user_groups where env_id = ${SYSTEM.envId} and name = ${`platform:org:${orgId}:owners`} on conflict do nothing`;
        }
        for (const other of await realmsReachedFrom(tx, realm, owners)) reached.add(other);
      }
      return reached;
    });
    await bumpAccess(this.#ctx, touched);
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

  async #level(tx: IdentityTx, realm: string, template: 'org' | 'env', subject: string): Promise<void> {
    for (const { group, role, scopes, contains } of LEVELS) {
      const name = `platform:${template}:${role}`;
      await this.#model.writeRole(tx, realm, name, scopes);
      if (contains) await this.#model.writeNesting(tx, realm, name, `platform:${template}:${contains}`);
      const groupName = `platform:${template}:${subject}:${group}`;
      await this.#model.writeGroup(tx, realm, groupName);
      await tx.sql`insert into group_roles ${tx.sql.row({ env_id: realm, group_name: groupName, role: name })} on conflict do nothing`;
    }
  }

  async #requirePerson(tx: IdentityTx, userId: string): Promise<void> {
    const [found] = await tx.sql<object[]>`select 1 from users where user_id = ${userId}`;
    if (!found) throw this.#ctx.problem('user_not_found', { detail: 'The owner has no account.' });
  }
}
