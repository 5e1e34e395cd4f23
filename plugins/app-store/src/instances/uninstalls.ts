import type { Ctx, Of } from '../context.ts';
import type { Installs } from './installs.ts';
import type { Instances } from './instances.ts';
import type { Onboarding } from './onboarding.ts';

/** The end of installed applications. */
export class Uninstalls {
  readonly #ctx: Ctx;
  readonly #parts: { readonly installs: Installs; readonly instances: Instances; readonly onboarding: Onboarding };

  constructor(ctx: Ctx, parts: { installs: Installs; instances: Instances; onboarding: Onboarding }) {
    [this.#ctx, this.#parts] = [ctx, parts];
  }

  async uninstall({ params, env, caller }: Of<'deleteInstance'>): Promise<void> {
    const { installs, instances, onboarding } = this.#parts;
    const row = await instances.of(env, params.instance_id);
    if (!row.open) throw this.#ctx.problem('instance_not_found', { detail: `It is ${row.status}.` });
    if (row.status === 'provisioning')
      throw this.#ctx.problem('instance_busy', { detail: 'It is being installed. Try again when that has ended.' });
    await installs.uninstall(row, caller);
    await onboarding
      .cancel(row)
      .catch(err => this.#ctx.log.warn({ err, instance_id: row.instance_id }, 'the run of an install that is over stays open'));
  }

  /** A task: the rest of an uninstall that was not finished. */
  async resume({ instance_id }: { instance_id: string }): Promise<void> {
    const { installs, instances } = this.#parts;
    const row = await instances.find(instance_id);
    if (row?.open && row.status === 'uninstalling') await installs.uninstall(row);
  }
}
