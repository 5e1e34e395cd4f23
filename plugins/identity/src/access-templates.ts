import { type RequestOf, SYSTEM } from '@platform/sdk';
import { type AccessModel, realmsReachedFrom } from './access-model.ts';
import { bumpAccess } from './access-version.ts';
import type { Contract, Ctx, IdentityTx } from './context.ts';

const VIEWER = ['sys:read', 'audit:read'];
const ADMIN = ['sys:env:admin', 'sys:app:admin', 'sys:services:admin', 'sys:memberships:admin', 'sys:instances:read'];
const OWNER = ['sys:org:admin'];
const LEVELS = [
  { group: 'viewers', role: 'viewer', scopes: VIEWER, contains: undefined },
  { group: 'admins', role: 'admin', scopes: ADMIN, contains: 'viewer' },
  { group: 'owners', role: 'owner', scopes: OWNER, contains: 'admin' },
] as const;

/** The access model of a new organization or environment, whole or not at all, and the same when repeated (G-SYS-03). */
export class AccessTemplates {
  readonly #ctx: Ctx;
  readonly #model: AccessModel;

  constructor(ctx: Ctx, model: AccessModel) {
    this.#ctx = ctx;
    this.#model = model;
  }

  async provision({ body }: RequestOf<Contract, 'provisionAccess'>) {
    const { template, org_id: orgId, env_id: envId, owner } = body;
    const subject = template === 'org' ? orgId : (envId ?? orgId);
    const realms = template === 'org' ? [SYSTEM.envId] : [SYSTEM.envId, subject];
    const groups = LEVELS.map(({ group }) => `platform:${template}:${subject}:${group}`);
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
