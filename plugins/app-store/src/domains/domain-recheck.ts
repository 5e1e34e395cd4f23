import { isProblem } from '@platform/sdk';
import type { Ctx } from '../context.ts';
import type { Instances } from '../instances/instances.ts';
import type { DomainBindings } from './domain-bindings.ts';
import type { BindingRow } from './binding-row.ts';
import type { DomainChallenges } from './domain-challenge.ts';

const GIVEN_UP_MS = 72 * 3_600_000;
const PER_RUN = 500;
const AT_ONCE = 8;

/** Looks every five minutes for the records of domains that were asked for; after 72 hours one has failed (G-APP-05). */
export class DomainRecheck {
  readonly #ctx: Ctx;
  readonly #parts: { readonly bindings: DomainBindings; readonly challenges: DomainChallenges; readonly instances: Instances };

  constructor(ctx: Ctx, parts: { bindings: DomainBindings; challenges: DomainChallenges; instances: Instances }) {
    [this.#ctx, this.#parts] = [ctx, parts];
  }

  async run(signal: AbortSignal): Promise<void> {
    const rows = await this.#ctx.db.sql<
      BindingRow[]
    >`select * from domain_bindings where status in ('pending', 'verified') order by updated_at limit ${PER_RUN}`;
    const queue = rows.values();
    await Promise.all(
      Array.from({ length: AT_ONCE }, async () => {
        for (const row of queue) {
          if (signal.aborted) return;
          await this.#look(row).catch(err =>
            this.#ctx.log.warn({ err, binding_id: row.binding_id }, 'a domain was not looked at; the next run tries'),
          );
        }
      }),
    );
  }

  async #look(row: BindingRow): Promise<void> {
    const { bindings, challenges, instances } = this.#parts;
    const instance = await instances.find(row.instance_id);
    if (instance?.status !== 'active') return;
    const late = row.status === 'pending' && this.#ctx.clock.now().getTime() - Date.parse(row.created_at) > GIVEN_UP_MS;
    if (late) return this.#giveUp(row);
    const method = row.method ?? ((await challenges.look(row, 'cname')).proven ? 'cname' : 'txt');
    try {
      await bindings.verify(instance, row, method);
    } catch (error) {
      // What is missing, or who has the name, is written down or answered when somebody asks.
      if (!isProblem(error) || !['domain_not_verified', 'fqdn_taken'].includes(error.code)) throw error;
    }
  }

  async #giveUp(row: BindingRow): Promise<void> {
    await this.#ctx.db.tx(async tx => {
      const rows = await tx.sql<
        object[]
      >`update domain_bindings set status = 'failed', updated_at = ${this.#ctx.clock.now()} where binding_id = ${row.binding_id}
        and status = 'pending' returning 1`;
      if (rows.length > 0) await this.#parts.bindings.tell(tx, row, 'failed');
    });
  }
}
