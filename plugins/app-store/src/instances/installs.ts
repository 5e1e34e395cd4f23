import { type Caller, isProblem } from '@platform/sdk';
import type { Ctx } from '../context.ts';
import type { DomainBindings } from '../domains/domain-bindings.ts';
import type { Provisioner } from '../provisioning/provisioner.ts';
import type { InstanceRow } from './instance-row.ts';
import type { Instances } from './instances.ts';

interface Parts {
  readonly bindings: DomainBindings;
  readonly instances: Instances;
  readonly provisioner: Provisioner;
}
const RUN_MS = 60_000;
const UNDO_MS = 40_000;
/** By then a neighbour has ended whatever it was asked for, also where nobody waits for its answer any more. */
const LATE_MS = 120_000;
const MOST_REASON = 500;

/** Brings installs to an end: active, or failed with nothing left of them. */
export class Installs {
  readonly #ctx: Ctx;
  readonly #parts: Parts;

  constructor(ctx: Ctx, parts: Parts) {
    [this.#ctx, this.#parts] = [ctx, parts];
  }

  /** Provisions an instance that the caller has in hand. Throws `provisioning_failed` (502) when it was taken back. */
  async complete(instanceId: string, caller?: Caller): Promise<InstanceRow> {
    const { instances, provisioner } = this.#parts;
    try {
      const row = await provisioner.run(instanceId, AbortSignal.timeout(RUN_MS));
      return await this.#ctx.db.tx(async tx => {
        await instances.change(tx, row, {
          from: ['provisioning'],
          set: { status: 'active', leased_until: null, last_error: null },
          told: 'activated',
          caller,
        });
        await tx.cancel('settle', instanceId);
        return { ...row, status: 'active' as const };
      });
    } catch (cause) {
      await this.#takeBack(instanceId, cause);
      throw this.#failure(cause);
    }
  }

  /** A task: what another process left unfinished is finished, and what it left undone is undone. */
  async settle({ instance_id }: { instance_id: string }): Promise<'start' | 'done'> {
    const { instances } = this.#parts;
    const before = await instances.find(instance_id);
    if (before?.status === 'failed' && !before.open) {
      await this.#takeBackLate(before);
      return 'done';
    }
    const left =
      before?.open === true &&
      (before.status === 'provisioning' ||
        before.status === 'failed' ||
        (before.status === 'onboarding' && before.workflow_run_id === null));
    if (!left) return 'done';
    if (!(await instances.lease(instance_id))) throw this.#ctx.problem('instance_busy', { detail: 'Another process is at it.' });
    if (before.status === 'onboarding') return 'start';
    if (before.status === 'failed') {
      await this.#undo(instance_id);
      return 'done';
    }
    try {
      await this.complete(instance_id);
    } catch (error) {
      // It is over: either it was taken back, or a task of its own takes back the rest.
      this.#ctx.log.warn({ err: error, instance_id }, 'an install that its process left has failed');
    }
    return 'done';
  }

  /** Uninstalls: everything that an install made goes, the last first. */
  async uninstall(row: InstanceRow, caller?: Caller): Promise<void> {
    const { bindings, instances } = this.#parts;
    const { instance_id } = row;
    if (!(await instances.lease(instance_id)))
      throw this.#ctx.problem('instance_busy', { detail: 'It is being installed or uninstalled. Try again in a while.' });
    try {
      await this.#ctx.db.tx(async tx => {
        const begun = await instances.change(tx, row, {
          from: ['onboarding', 'active', 'suspended', 'failed', 'uninstalling'],
          set: { status: 'uninstalling' },
        });
        // Its onboarding ended a moment ago, and the install goes on.
        if (!begun) throw this.#ctx.problem('instance_busy', { detail: 'It is being installed. Try again when that has ended.' });
        await tx.enqueue('uninstall', { instance_id }, { key: instance_id, at: instances.leaseEnd(), envId: row.env_id });
        await tx.cancel('settle', instance_id);
      });
      await bindings.giveUp(row, caller);
      await this.#parts.provisioner.undo(instance_id, AbortSignal.timeout(UNDO_MS));
      await this.#ctx.db.tx(async tx => {
        await instances.change(tx, row, {
          from: ['uninstalling'],
          set: { status: 'uninstalled', open: false, leased_until: null, client_secret: null, app_instance_id: null },
          told: 'deleted',
          caller,
        });
        await tx.cancel('uninstall', instance_id);
      });
    } catch (cause) {
      await instances.release(instance_id).catch(() => undefined);
      if (isProblem(cause) && cause.service === 'app') throw cause;
      throw this.#ctx.problem('deprovisioning_failed', {
        detail: 'A service did not answer. What is left goes in the background, or when you uninstall it again.',
        cause,
      });
    }
  }

  /** The instance has failed at once, whatever becomes of its traces: a task goes on with those. */
  async #takeBack(instanceId: string, cause: unknown): Promise<void> {
    const { instances } = this.#parts;
    const row = await instances.find(instanceId);
    if (!row) return;
    const reason = (isProblem(cause) ? `${cause.service} refused: ${cause.detail ?? cause.title}` : 'A service did not answer.').slice(
      0,
      MOST_REASON,
    );
    await this.#ctx.db.tx(async tx => {
      await instances.change(tx, row, { from: ['provisioning'], set: { status: 'failed', last_error: reason }, told: 'failed' });
      await tx.enqueue('settle', { instance_id: instanceId }, { key: instanceId, at: instances.leaseEnd(), envId: row.env_id });
    });
    await this.#undo(instanceId).catch(async err => {
      this.#ctx.log.warn({ err, instance_id: instanceId }, 'what a failed install left is taken back later');
      await instances.release(instanceId);
      await this.#ctx.db.tx(tx => tx.enqueue('settle', { instance_id: instanceId }, { key: instanceId, envId: row.env_id }));
    });
  }

  /** Takes back what was begun, and queues the look for what came late. */
  async #undo(instanceId: string): Promise<void> {
    const { bindings, instances, provisioner } = this.#parts;
    const row = await instances.find(instanceId);
    if (!row) return;
    try {
      await bindings.giveUp(row);
      await provisioner.undo(instanceId, AbortSignal.timeout(UNDO_MS));
      await this.#ctx.db.tx(async tx => {
        await tx.sql`update instances set open = false, leased_until = null, client_secret = null, app_instance_id = null
          where instance_id = ${instanceId}`;
        await tx.cancel('settle', instanceId);
        const at = new Date(this.#ctx.clock.now().getTime() + LATE_MS);
        await tx.enqueue('settle', { instance_id: instanceId }, { key: instanceId, at, envId: row.env_id });
      });
    } catch (error) {
      await instances.release(instanceId);
      throw error;
    }
  }

  /**
   * A call that was given up may have come to its end after the undo: everything is taken back once more. What it made is named after the
   * slug, so the slug is held meanwhile; where another install has it, the names are that one's, and stay.
   */
  async #takeBackLate({ instance_id }: InstanceRow): Promise<void> {
    const { instances, provisioner } = this.#parts;
    if (!(await instances.reopen(instance_id))) return;
    try {
      await provisioner.undoAll(instance_id, AbortSignal.timeout(UNDO_MS));
    } finally {
      await this.#ctx.db.sql`update instances set open = false, leased_until = null where instance_id = ${instance_id}`;
    }
  }

  #failure(cause: unknown): Error {
    if (isProblem(cause) && cause.service === 'app') return cause;
    if (isProblem(cause) && cause.service === 'sys' && ['slug_taken', 'hostname_taken'].includes(cause.code))
      return this.#ctx.problem('instance_slug_taken', { detail: 'The host name is in use. Choose another slug.', cause });
    if (isProblem(cause) && cause.service === 'sys' && cause.code === 'slug_reserved')
      return this.#ctx.problem('slug_reserved', { detail: 'Choose another slug.', cause });
    const why =
      isProblem(cause) && cause.status < 500 ? `${cause.service} refused: ${cause.detail ?? cause.title}` : 'A service did not answer.';
    return this.#ctx.problem('provisioning_failed', { detail: `${why} Nothing was installed.`, cause });
  }
}
