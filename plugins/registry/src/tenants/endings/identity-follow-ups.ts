import type { LeftTask, TaskRun } from '@platform/sdk';
import type { Env, Org } from '../../../contract/schema/tenant.ts';
import type { FollowedTenant } from '../../../contract/schema/upkeep.ts';
import type { Ctx, RegistryTx } from '../../context.ts';
import { authHostOf } from '../sign-in-host.ts';
import type { Subject } from '../subject.ts';

/** So many are tried while the caller waits. */
const TRIED_NOW = 50;
/** Room for the caller's own process, which tries right after the commit. */
const OWN_TRY_S = 2;

/**
 * Brings the identity service to what the records say: the sign-in host of an environment, no host for an archived one, no access model for
 * what is gone. Asked for in the transaction of the change and done after it, again and again until it is done (registry rule 7, H-32).
 */
export class IdentityFollowUps {
  readonly #ctx: Ctx;

  constructor(ctx: Ctx) {
    this.#ctx = ctx;
  }

  /** `afterSeconds` leaves room for a call that may still be under way. */
  async ask(tx: RegistryTx, subjects: readonly Subject[], afterSeconds = OWN_TRY_S): Promise<void> {
    const at = new Date(this.#ctx.clock.now().getTime() + afterSeconds * 1_000);
    for (const { kind, id, orgId, name } of subjects) await tx.enqueue('followTenant', { kind, id, org_id: orgId, name }, { key: id, at });
  }

  /** Right after the commit, so that the caller sees the effect. The first failure ends it, because somebody waits for the answer. */
  async tryNow(subjects: readonly Pick<Subject, 'id'>[]): Promise<void> {
    for (const { id } of subjects.slice(0, TRIED_NOW)) if ((await this.#ctx.tasks.attempt('followTenant', id)) === 'failed') return;
  }

  /** What the identity service has not followed yet, of all tenants or of one. */
  left(id?: string): Promise<readonly LeftTask<FollowedTenant>[]> {
    return this.#ctx.tasks.left('followTenant', id);
  }

  /** The task of one tenant: what the records say now is what counts. */
  async follow({ kind, id, org_id: orgId }: FollowedTenant, { signal }: Pick<TaskRun, 'signal'>): Promise<void> {
    const { services, db, platform } = this.#ctx;
    const [org] = await db.sql<Org[]>`select * from orgs where org_id = ${orgId}`;
    const [env] = kind === 'env' ? await db.sql<Env[]>`select * from envs where env_id = ${id}` : [];
    if (!org || (kind === 'env' && !env)) return void (await services.identity.removeAccess({ params: { template: kind, id }, signal }));
    if (!env) return;
    // An archived environment gives its host away, so that the slug or domain can be used again (C34).
    const archived = env.status === 'archived' || org.status === 'archived';
    const host = archived ? `${env.env_id}.released.invalid` : authHostOf(env, org, platform.domain);
    await services.identity.putRealm({ params: { env_id: id }, body: { host, org_id: orgId }, signal });
  }
}
