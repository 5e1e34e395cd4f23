import type { Sealed } from '@platform/sdk';
import type { Ctx } from '../context.ts';
import { type InstanceRow, selectInstances } from '../instances/instance-row.ts';
import { accessSteps } from './access-steps.ts';
import { clientStep } from './client-step.ts';
import { hostStep } from './host-step.ts';
import type { Brought, ProvisioningStep } from './provisioning-step.ts';
import { statisticsStep } from './statistics-step.ts';

interface Taken {
  readonly step: string;
  readonly state: 'doing' | 'done';
}

/**
 * Installs step by step, in the order of G-APP-03, and takes it back in reverse. Each step is written down before it is begun, so that
 * another process goes on where this one ended.
 */
export class Provisioner {
  readonly #ctx: Ctx;
  readonly #steps: readonly ProvisioningStep[];

  constructor(ctx: Ctx) {
    this.#ctx = ctx;
    this.#steps = [...accessSteps(ctx), clientStep(ctx), hostStep(ctx), statisticsStep(ctx)];
  }

  /** Does what is not done yet. Throws what a neighbour threw; everything that was done stays. */
  async run(instanceId: string, signal: AbortSignal): Promise<InstanceRow> {
    const { sql } = this.#ctx.db;
    const taken = await sql<Taken[]>`select step, state from provisioning_steps where instance_id = ${instanceId}`;
    const done = new Set(taken.flatMap(({ step, state }) => (state === 'done' ? [step] : [])));
    for (const [position, step] of this.#steps.entries()) {
      if (done.has(step.name)) continue;
      signal.throwIfAborted();
      await sql`insert into provisioning_steps ${sql.row({ instance_id: instanceId, position, step: step.name, state: 'doing' })}
        on conflict do nothing`;
      const brought = await step.do(await this.#instance(instanceId), signal);
      await this.#ctx.db.tx(async tx => {
        if (brought)
          await tx.sql`update instances set ${tx.sql.row(columnsOf(brought, value => tx.sql.json(value)))}
            where instance_id = ${instanceId}`;
        await tx.sql`update provisioning_steps set state = 'done' where instance_id = ${instanceId} and step = ${step.name}`;
      });
    }
    return this.#instance(instanceId);
  }

  /** Takes back what was begun, the last first. What a failure leaves is taken back by the next call. */
  async undo(instanceId: string, signal: AbortSignal): Promise<void> {
    const { sql } = this.#ctx.db;
    const taken = await sql<Taken[]>`select step, state from provisioning_steps where instance_id = ${instanceId} order by position desc`;
    for (const { step: name } of taken) {
      signal.throwIfAborted();
      await this.#steps.find(step => step.name === name)?.undo(await this.#instance(instanceId), signal);
      await sql`delete from provisioning_steps where instance_id = ${instanceId} and step = ${name}`;
    }
  }

  /** Takes back every step, the last first, whatever is written down of it. */
  async undoAll(instanceId: string, signal: AbortSignal): Promise<void> {
    const instance = await this.#instance(instanceId);
    for (const step of this.#steps.toReversed()) {
      signal.throwIfAborted();
      await step.undo(instance, signal);
    }
  }

  async #instance(instanceId: string): Promise<InstanceRow> {
    const { sql } = this.#ctx.db;
    const [row] = await selectInstances(sql, sql`where instance_id = ${instanceId}`);
    if (!row) throw new Error('the instance went away with its environment');
    return row;
  }
}

function columnsOf({ client_secret, ...members }: Brought, json: (value: Sealed) => unknown): object {
  return { ...members, ...(client_secret ? { client_secret: json(client_secret) } : {}) };
}
