import { type RequestOf, SYSTEM } from '@platform/sdk';
import type { Env } from '../../../contract/schema/tenant.ts';
import type { Contract, Ctx, RegistryTx } from '../../context.ts';
import type { EnvironmentPurges } from './environment-purges.ts';
import type { TenantParts } from '../orgs.ts';
import { refuseSystem } from '../status.ts';
import { envSubject, orgSubject, type Subject } from '../subject.ts';

type EnvKey = Pick<Env, 'env_id' | 'org_id' | 'slug'>;
type DeletionParts = TenantParts & { readonly purges: EnvironmentPurges };

/**
 * Deleting an organization or environment with everything in it: one transaction here, and what other services hold is followed up (doc1,
 * States; H-32).
 */
export class Deletion {
  readonly #ctx: Ctx;
  readonly #parts: DeletionParts;

  constructor(ctx: Ctx, parts: DeletionParts) {
    this.#ctx = ctx;
    this.#parts = parts;
  }

  async org({ params, caller, correlationId, ifMatch }: RequestOf<Contract, 'deleteOrg'>): Promise<void> {
    const org = await this.#parts.access.org(caller, params.id, 'owner');
    refuseSystem(this.#ctx, { org_id: org.org_id });
    const subjects = await this.#ctx.db.tx(async tx => {
      const [still] = await tx.sql<{ version: number }[]>`select version from orgs where org_id = ${org.org_id} for update`;
      if (!still) throw this.#ctx.problem('org_not_found', { detail: 'It was deleted in the meantime.' });
      this.#ctx.requireVersion(ifMatch, still.version);
      const envs = await tx.sql<EnvKey[]>`select env_id, org_id, slug from envs where org_id = ${org.org_id} for update`;
      await this.#envs(tx, envs);
      const isOrphan = (await this.#parts.creations.forget(tx, [org.org_id])).length > 0;
      await tx.sql`delete from branding where subject_kind = 'org' and subject_id = ${org.org_id}`;
      await tx.sql`delete from orgs where org_id = ${org.org_id}`;
      // Nobody has ever met an orphan of a crashed create: its name is free again (REG-025).
      if (!isOrphan) await tx.sql`insert into tombstones (kind, name) values ('org_slug', ${org.slug}) on conflict do nothing`;
      await tx.emit('platform:sys:org:deleted', SYSTEM.envId, { org_id: org.org_id });
      const gone: Subject[] = [...envs.map(envSubject), orgSubject(org)];
      await this.#parts.followUps.ask(tx, gone);
      await this.#parts.audit.write(tx, {
        action: 'org.deleted',
        envId: SYSTEM.envId,
        caller,
        correlationId,
        resource: { type: 'org', id: org.org_id },
        details: { slug: org.slug, environments: envs.length },
      });
      return gone;
    });
    await this.#parts.followUps.tryNow(subjects);
    await this.#parts.states.gone(subjects.flatMap(({ kind, id }) => (kind === 'env' ? [id] : [])));
    await this.#parts.changes.publish({ scope: 'org', org_id: org.org_id });
  }

  async env({ params, caller, correlationId, ifMatch }: RequestOf<Contract, 'deleteEnv'>): Promise<void> {
    const env = await this.#parts.access.env(caller, params.env_id, 'owner');
    refuseSystem(this.#ctx, env);
    await this.#ctx.db.tx(async tx => {
      const [still] = await tx.sql<{ version: number }[]>`select version from envs where env_id = ${env.env_id} for update`;
      if (!still) throw this.#ctx.problem('env_not_found', { detail: 'It was deleted in the meantime.' });
      this.#ctx.requireVersion(ifMatch, still.version);
      await this.#envs(tx, [env]);
      await this.#parts.followUps.ask(tx, [envSubject(env)]);
      await this.#parts.audit.write(tx, {
        action: 'env.deleted',
        envId: SYSTEM.envId,
        caller,
        correlationId,
        resource: { type: 'env', id: env.env_id },
        details: { slug: env.slug, org_id: env.org_id },
      });
    });
    await this.#parts.followUps.tryNow([envSubject(env)]);
    await this.#parts.states.gone([env.env_id]);
    await this.#parts.changes.publish({ scope: 'env', org_id: env.org_id, env_id: env.env_id });
  }

  /** Everything of environments that lives here, with one `deleted` event each; tables that name them by key go along. */
  async #envs(tx: RegistryTx, envs: readonly EnvKey[]): Promise<void> {
    const ids = envs.map(({ env_id }) => env_id);
    const orphans = await this.#parts.creations.forget(tx, ids);
    await tx.sql`delete from branding where subject_kind = 'env' and subject_id = any(${ids}::uuid[])`;
    await tx.sql`delete from policy_sets where env_id = any(${ids}::uuid[])`;
    await tx.sql`delete from policy_relations where env_id = any(${ids}::uuid[])`;
    await tx.sql`delete from policy_attributes where env_id = any(${ids}::uuid[])`;
    await tx.sql`insert into tombstones (kind, name) select 'env_slug', org_id || '/' || slug from envs
      where env_id = any(${ids}::uuid[]) and env_id <> all(${orphans}::uuid[]) on conflict do nothing`;
    await tx.sql`delete from envs where env_id = any(${ids}::uuid[])`;
    for (const { env_id, org_id } of envs) await tx.emit('platform:sys:env:deleted', env_id, { env_id, org_id });
    await this.#parts.purges.ask(tx, ids);
  }
}
