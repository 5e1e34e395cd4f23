import { type Caller, type Sql, SYSTEM } from '@platform/sdk';
import type { Env, Org } from '../../contract/schema/tenant.ts';
import type { Ctx } from '../context.ts';

type Stated = Pick<Org, 'status'>;

/** Refuses a change to what is archived or suspended; an environment shares the fate of its organization (G-SYS-02). */
export function requireMutable(ctx: Ctx, { org, env }: { org: Stated; env?: Stated }): void {
  if (org.status === 'archived' || env?.status === 'archived')
    throw ctx.problem('record_archived', { detail: 'Nothing leaves the archive. Create another one.' });
  if (env?.status === 'suspended') throw ctx.problem('env_suspended', { detail: 'A platform administrator can resume the environment.' });
  if (org.status === 'suspended') throw ctx.problem('org_suspended', { detail: 'A platform administrator can resume the organization.' });
}

/**
 * {@link requireMutable} of the records as they are now, and as they stay until the transaction ends: who suspends, archives or deletes
 * them waits for it, or is waited for. The organization first, as who deletes it takes its lock.
 */
export async function holdMutable(
  ctx: Ctx,
  sql: Sql,
  { org_id: orgId, env_id: envId }: { org_id: string; env_id: string },
): Promise<{ org: Org; env: Env }> {
  const [[org], [env]] = await Promise.all([
    sql<Org[]>`select * from orgs where org_id = ${orgId} for share`,
    sql<Env[]>`select * from envs where env_id = ${envId} for share`,
  ]);
  if (!org || !env) throw ctx.problem('env_not_found', { detail: 'It was deleted in the meantime.' });
  requireMutable(ctx, { org, env });
  return { org, env };
}

/** The same of an organization. */
export async function holdMutableOrg(ctx: Ctx, sql: Sql, orgId: string): Promise<Org> {
  const [org] = await sql<Org[]>`select * from orgs where org_id = ${orgId} for share`;
  if (!org) throw ctx.problem('org_not_found', { detail: 'It was deleted in the meantime.' });
  requireMutable(ctx, { org });
  return org;
}

/**
 * A change of status is the platform administrator's, possible while suspended, and never out of the archive; any other change needs an
 * active record.
 */
export function requireChange(ctx: Ctx, caller: Caller, asked: Stated['status'] | undefined, subject: { org: Stated; env?: Stated }): void {
  const before = (subject.env ?? subject.org).status;
  if (asked === undefined || asked === before || before === 'archived') return requireMutable(ctx, subject);
  if (!caller.platformAdmin)
    throw ctx.problem('platform_admin_required', { detail: 'Suspending and resuming is for platform administrators.' });
}

/** The platform's own organization and environment cannot be suspended, archived or deleted. */
export function refuseSystem(ctx: Ctx, record: Pick<Org, 'org_id'> & Partial<Pick<Env, 'env_id'>>): void {
  if (record.env_id === undefined ? record.org_id === SYSTEM.orgId : record.env_id === SYSTEM.envId)
    throw ctx.problem('system_record_protected');
}
