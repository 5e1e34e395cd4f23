import { type Caller, isId, isProblem, type RequestOf, SYSTEM, type TaskRun } from '@platform/sdk';
import type { BegunRemoval } from '../../contract/schema/settling.ts';
import type { Contract, Ctx, RegistryTx } from '../context.ts';
import { brokenAt } from './member-changes.ts';
import type { MemberParts } from './memberships.ts';
import { holdMutableOrg, requireMutable } from '../tenants/status.ts';
import { groupOf } from './org-groups.ts';

/**
 * Removing a member: event, audit row and the groups of the organization and of all its environments together. A removal that has begun
 * is on record before: if the commit is lost after the verb, a task finds the person gone and tells it then.
 */
export class Removal {
  readonly #ctx: Ctx;
  readonly #parts: MemberParts;

  constructor(ctx: Ctx, parts: MemberParts) {
    this.#ctx = ctx;
    this.#parts = parts;
  }

  /** Idempotent: who is no member is removed already, and nothing is told twice. */
  async remove({ params, caller, correlationId }: RequestOf<Contract, 'removeMembership'>): Promise<void> {
    const org = await this.#parts.access.org(caller, params.org_id, 'admin');
    requireMutable(this.#ctx, { org });
    const { org_id } = org;
    const userId = params.user_id;
    if (!isId(userId) || (await this.#held(org_id, userId)).groups.length === 0) return;
    const begun = await this.#begin({ org_id, user_id: userId, caller, correlation_id: correlationId });
    try {
      await this.#parts.changes.run(org_id, async tx => {
        await holdMutableOrg(this.#ctx, tx.sql, org_id);
        const { groups, prefixes } = await this.#held(org_id, userId);
        if (groups.includes(groupOf(org_id, 'owner'))) await this.#parts.owners.requireOther(caller, org_id, userId);
        await tx.sql`delete from acceptances where org_id = ${org_id} and user_id = ${userId}`;
        // A removal that waited so long for a turn that it was taken for broken must begin again.
        if (!(await tx.cancel('settleRemoval', begun.removal_id)))
          throw this.#ctx.problem('members_busy', { headers: { 'retry-after': '2' } });
        if (groups.length === 0) return;
        await this.#tell(tx, begun);
        await this.#parts.changes.ask(signal =>
          this.#ctx.services.identity.leaveGroups({
            params: { user_id: userId },
            body: { prefixes },
            idempotencyKey: begun.removal_id,
            signal,
          }),
        );
      });
    } catch (error) {
      if (isProblem(error) && error.status < 500) await this.#ctx.db.tx(tx => tx.cancel('settleRemoval', begun.removal_id));
      throw error;
    }
  }

  /** The task of one: tells it when it happened without its commit, and forgets it when it did not happen. */
  async settle(begun: BegunRemoval, run: TaskRun): Promise<void> {
    await this.#parts.changes.run(begun.org_id, async tx => {
      await run.finish(tx);
      const [org] = await tx.sql<object[]>`select 1 from orgs where org_id = ${begun.org_id} for share`;
      if (org && (await this.#held(begun.org_id, begun.user_id)).groups.length === 0) await this.#tell(tx, begun);
    });
  }

  async #tell(tx: RegistryTx, { org_id, user_id, caller, correlation_id }: BegunRemoval): Promise<void> {
    await tx.emit('platform:sys:membership:removed', SYSTEM.envId, { org_id, user_id });
    await this.#parts.changes.told(tx, user_id);
    await this.#parts.audit.write(tx, {
      action: 'membership.removed',
      envId: SYSTEM.envId,
      // The trail reads who it was, and no more of a caller.
      caller: caller as unknown as Caller,
      correlationId: correlation_id,
      resource: { type: 'user', id: user_id },
      details: { org_id },
    });
  }

  /** Groups of the organization and its environments the person is in, and the names all such groups start with. */
  async #held(orgId: string, userId: string): Promise<{ groups: readonly string[]; prefixes: string[] }> {
    const envs = await this.#ctx.db.sql<{ env_id: string }[]>`select env_id from envs where org_id = ${orgId}`;
    const prefixes = [`platform:org:${orgId}:`, ...envs.map(({ env_id }) => `platform:env:${env_id}:`)];
    const { groups } = await this.#parts.changes.ask(signal =>
      this.#ctx.services.identity.userGroups({ params: { user_id: userId }, signal }),
    );
    return { prefixes, groups: groups.map(({ name }) => name).filter(name => prefixes.some(prefix => name.startsWith(prefix))) };
  }

  async #begin({
    org_id,
    user_id,
    caller,
    correlation_id,
  }: {
    org_id: string;
    user_id: string;
    caller: Caller;
    correlation_id: string;
  }): Promise<BegunRemoval> {
    const { kind, subject, userId } = caller;
    const begun = {
      removal_id: this.#ctx.platform.newId(),
      org_id,
      user_id,
      caller: { kind, subject, ...(userId ? { userId } : {}) },
      correlation_id,
    };
    await this.#ctx.db.tx(tx => tx.enqueue('settleRemoval', begun, { key: begun.removal_id, at: brokenAt(this.#ctx) }));
    return begun;
  }
}
