import { type Caller, isProblem, type RequestOf, SYSTEM } from '@platform/sdk';
import type { Contract, Ctx, RegistryTx } from '../context.ts';
import { isUuid } from '../uuid.ts';
import { BROKEN_AFTER_MS } from './member-changes.ts';
import type { MemberParts } from './memberships.ts';
import { holdMutableOrg, requireMutable } from '../tenants/status.ts';
import { groupOf } from './org-groups.ts';

const PER_PASS = 50;

interface Begun {
  readonly removal_id: string;
  readonly org_id: string;
  readonly user_id: string;
  readonly caller: Pick<Caller, 'kind' | 'subject' | 'userId'>;
  readonly correlation_id: string;
  readonly begun_at: string;
}

/**
 * Removing a member: event, audit row and the groups of the organization and of all its environments together. A removal that has begun
 * is on record before: if the commit is lost after the verb, a later pass finds the person gone and tells it then.
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
    if (!isUuid(userId) || (await this.#held(org_id, userId)).groups.length === 0) return;
    const begun = await this.#begin({ org_id, user_id: userId, caller, correlation_id: correlationId });
    try {
      await this.#parts.changes.run(org_id, async tx => {
        await holdMutableOrg(this.#ctx, tx.sql, org_id);
        const { groups, prefixes } = await this.#held(org_id, userId);
        if (groups.includes(groupOf(org_id, 'owner'))) await this.#parts.owners.requireOther(caller, org_id, userId);
        await tx.sql`delete from acceptances where org_id = ${org_id} and user_id = ${userId}`;
        if (!(await this.#close(tx, begun)) || groups.length === 0) return;
        await this.#tell(tx, begun);
        await this.#parts.changes.ask(signal => this.#ctx.services.identity.leaveGroups({ params: { user_id: userId }, body: { prefixes }, idempotencyKey: begun.removal_id, signal }));
      });
    } catch (error) {
      if (isProblem(error) && error.status < 500) await this.#ctx.db.sql`delete from removals where removal_id = ${begun.removal_id}`;
      throw error;
    }
  }

  /** Tells the removals that happened without their commit; one that did not happen is forgotten. */
  async settle(signal: AbortSignal): Promise<void> {
    const before = new Date(this.#ctx.clock.now().getTime() - BROKEN_AFTER_MS).toISOString();
    const broken = await this.#ctx.db.sql<Begun[]>`select * from removals where begun_at < ${before} order by begun_at limit ${PER_PASS}`;
    for (const begun of broken) {
      if (signal.aborted) return;
      await this.#settleOne(begun).catch(error => this.#ctx.log.warn({ err: error, removal_id: begun.removal_id }, 'a broken removal could not be settled yet'));
    }
  }

  async #settleOne(begun: Begun): Promise<void> {
    await this.#parts.changes.run(begun.org_id, async tx => {
      if (!(await this.#close(tx, begun))) return;
      const { groups } = await this.#held(begun.org_id, begun.user_id);
      if (groups.length === 0) await this.#tell(tx, begun);
    });
  }

  async #tell(tx: RegistryTx, { org_id, user_id, caller, correlation_id }: Begun): Promise<void> {
    await tx.emit('platform:sys:membership:removed', SYSTEM.envId, { org_id, user_id });
    await this.#parts.changes.told(tx, user_id);
    await this.#parts.audit.write(tx, {
      action: 'membership.removed',
      envId: SYSTEM.envId,
      // The trail reads who it was, and no more of a caller.
      caller: caller as Caller,
      correlationId: correlation_id,
      resource: { type: 'user', id: user_id },
      details: { org_id },
    });
  }

  /** Groups of the organization and its environments the person is in, and the names all such groups start with. */
  async #held(orgId: string, userId: string): Promise<{ groups: readonly string[]; prefixes: string[] }> {
    const envs = await this.#ctx.db.sql<{ env_id: string }[]>`select env_id from envs where org_id = ${orgId}`;
    const prefixes = [`platform:org:${orgId}:`, ...envs.map(({ env_id }) => `platform:env:${env_id}:`)];
    const { groups } = await this.#parts.changes.ask(signal => this.#ctx.services.identity.userGroups({ params: { user_id: userId }, signal }));
    return { prefixes, groups: groups.map(({ name }) => name).filter(name => prefixes.some(prefix => name.startsWith(prefix))) };
  }

  async #begin({ org_id, user_id, caller, correlation_id }: { org_id: string; user_id: string; caller: Caller; correlation_id: string }): Promise<Begun> {
    const { platform, clock, db } = this.#ctx;
    const who = { kind: caller.kind, subject: caller.subject, userId: caller.userId };
    const begun = { removal_id: platform.newId(), org_id, user_id, caller: who, correlation_id, begun_at: clock.now().toISOString() };
    await db.sql`insert into removals ${db.sql.row({ ...begun, caller: db.sql.json(who) })}`;
    return begun;
  }

  /** Whether it was still on record: of two who close it, one does. */
  async #close(tx: RegistryTx, { removal_id }: Begun): Promise<boolean> {
    return (await tx.sql<object[]>`delete from removals where removal_id = ${removal_id} returning 1`).length > 0;
  }
}
