import { brokenConstraint, type Caller, sorted } from '@platform/sdk';
import type { Instance, InstanceStatus } from '../../contract/schema/instance.ts';
import type { Ctx, StoreTx } from '../context.ts';
import { instanceOf, type InstanceRow, selectInstances } from './instance-row.ts';

type Told = 'created' | 'activated' | 'updated' | 'failed' | 'deleted';
interface Asked {
  readonly status?: InstanceStatus;
  readonly limit?: number;
  readonly cursor?: string;
  readonly sort?: string;
  readonly order?: 'asc' | 'desc';
}

/** Longer than an install and its undoing may take. */
const LEASE_MS = 120_000;

/**
 * Installed applications as they are written down. Life: onboarding → provisioning → active ⇄ suspended → uninstalling → uninstalled;
 * onboarding → rejected; provisioning → failed (G-APP-03).
 */
export class Instances {
  readonly #ctx: Ctx;

  constructor(ctx: Ctx) {
    this.#ctx = ctx;
  }

  async list(envId: string, { status, limit, cursor, ...asked }: Asked) {
    const { db, page } = this.#ctx;
    const wanted = status ?? null;
    const query = { ...(limit === undefined ? {} : { limit }), ...(cursor === undefined ? {} : { cursor }) };
    const { items, next_cursor } = await page(
      query,
      sorted({ list: `instances ${envId} ${wanted}`, order: { created_at: 'time', instance_id: 'id' } }, asked, {
        name: ['name', 'text'],
        created_at: ['created_at', 'time'],
      }),
      ({ where, order, limit: most }) =>
        selectInstances(
          db.sql,
          db.sql`where env_id = ${envId} and case when ${wanted}::text is null then status <> 'uninstalled' else status = ${wanted} end
            and ${where} order by ${order} limit ${most}`,
        ),
    );
    return { items: items.map(instanceOf), next_cursor };
  }

  async get(envId: string, instanceId: string): Promise<Instance> {
    return instanceOf(await this.of(envId, instanceId));
  }

  async access(envId: string, instanceId: string): Promise<{ items: { name: string; kind: 'role' | 'group' }[] }> {
    const { roles, groups } = await this.of(envId, instanceId);
    return { items: [...roles.map(name => ({ name, kind: 'role' as const })), ...groups.map(name => ({ name, kind: 'group' as const }))] };
  }

  /** One of an environment; one of another is not there. */
  async of(envId: string, instanceId: string): Promise<InstanceRow> {
    const row = await this.find(instanceId);
    if (row?.env_id !== envId) throw this.#ctx.problem('instance_not_found', { detail: 'Nothing is installed here under that number.' });
    return row;
  }

  async find(instanceId: string): Promise<InstanceRow | undefined> {
    const { sql } = this.#ctx.db;
    const [row] = await selectInstances(sql, sql`where instance_id = ${instanceId}`);
    return row;
  }

  /** Takes an instance in hand for a while, so that nobody else works at it; nothing when somebody does. */
  async lease(instanceId: string): Promise<InstanceRow | undefined> {
    const now = this.#ctx.clock.now();
    const [row] = await this.#ctx.db.sql<InstanceRow[]>`
      update instances set leased_until = ${new Date(now.getTime() + LEASE_MS)} where instance_id = ${instanceId}
        and (leased_until is null or leased_until <= ${now}) returning *`;
    return row;
  }

  async release(instanceId: string): Promise<void> {
    await this.#ctx.db.sql`update instances set leased_until = null where instance_id = ${instanceId}`;
  }

  /** Gives an install that failed its slug back for a while, with the hand on it; false where another install has the slug by now. */
  async reopen(instanceId: string): Promise<boolean> {
    try {
      const rows = await this.#ctx.db.sql<object[]>`
        update instances set open = true, leased_until = ${this.leaseEnd()} where instance_id = ${instanceId} and status = 'failed'
          and not open returning 1`;
      return rows.length > 0;
    } catch (error) {
      if (brokenConstraint(error) === 'instances_slug') return false;
      throw error;
    }
  }

  /** The latest time at which a process that takes it now lets it go. */
  leaseEnd(): Date {
    return new Date(this.#ctx.clock.now().getTime() + LEASE_MS + 1_000);
  }

  /**
   * A change of members with its event and audit entry in one transaction, where the status is still one of `from`.
   * @returns whether it was made
   */
  async change(
    tx: StoreTx,
    row: Pick<InstanceRow, 'instance_id' | 'listing_id' | 'env_id'>,
    { from, set, told, caller }: { from: readonly InstanceStatus[]; set: object; told?: Told; caller?: Caller | undefined },
  ): Promise<boolean> {
    const changed = await tx.sql<object[]>`
      update instances set ${tx.sql.row({ ...set, updated_at: this.#ctx.clock.now() })} where instance_id = ${row.instance_id}
        and status = any(${[...from]}::text[]) returning 1`;
    if (changed.length > 0 && told) await this.tell(tx, row, told, caller);
    return changed.length > 0;
  }

  async tell(
    tx: StoreTx,
    { instance_id, listing_id, env_id }: Pick<InstanceRow, 'instance_id' | 'listing_id' | 'env_id'>,
    told: Told,
    caller?: Caller,
  ): Promise<void> {
    await tx.emit(`platform:app:instance:${told}`, env_id, { instance_id, listing_id, env_id });
    await tx.audit({
      action: `instance.${told}`,
      envId: env_id,
      caller,
      resource: { type: 'app_instance', id: instance_id },
      details: { listing_id },
    });
  }
}
