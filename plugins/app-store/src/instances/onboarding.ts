import type { StepRequest, StepResponse } from '@platform/workflow/contract';
import type { Delivery } from '@platform/sdk';
import { type Ctx, isRefusal } from '../context.ts';
import type { InstanceRow } from './instance-row.ts';
import { selectInstances } from './instance-row.ts';
import type { Instances } from './instances.ts';

const WORKFLOW = 'app-install';
const SEVEN_DAYS_S = 604_800;
export const STEP_KINDS = ['KYCCheckStep', 'ApprovalReviewStep', 'DocumentUploadStep'] as const;

/** What comes before an install, as a run of the workflow service: this service only answers its steps (APP-012 to APP-017). */
export class Onboarding {
  readonly #ctx: Ctx;
  readonly #instances: Instances;

  constructor(ctx: Ctx, instances: Instances) {
    [this.#ctx, this.#instances] = [ctx, instances];
  }

  /** Starts the run. Where the workflow service is away it begins later, by the task of the install. */
  async begin(row: InstanceRow): Promise<InstanceRow> {
    try {
      return await this.start(row);
    } catch (err) {
      this.#ctx.log.warn({ err, instance_id: row.instance_id }, 'the onboarding of an install begins later');
      return row;
    }
  }

  /** The same once under the instance's id, however often it is asked for. */
  async start(row: InstanceRow): Promise<InstanceRow> {
    const { instance_id, env_id, name, manifest, listing_id, app_slug, version } = row;
    try {
      const { run_id } = await this.#ctx.services.workflow.startRun({
        body: {
          workflow: WORKFLOW,
          env_id,
          input: { steps: [...manifest.onboarding], instance_id, listing_id, app_slug, version, name },
          idempotency_key: instance_id,
        },
      });
      await this.#ctx.db.tx(async tx => {
        await tx.sql`update instances set workflow_run_id = ${run_id} where instance_id = ${instance_id}`;
        await tx.cancel('settle', instance_id);
      });
      return (await this.#instances.find(instance_id)) ?? { ...row, workflow_run_id: run_id };
    } finally {
      await this.#instances.release(instance_id);
    }
  }

  /** A run that nobody needs any more. */
  async cancel({ workflow_run_id, env_id }: InstanceRow): Promise<void> {
    if (workflow_run_id === null) return;
    try {
      await this.#ctx.services.workflow.cancelRun({ params: { run_id: workflow_run_id }, targetEnvId: env_id });
    } catch (cause) {
      if (!isRefusal(cause, 'run_not_found', 'run_finished')) throw cause;
    }
  }

  /** One step. The first and the last of the three kinds are stubs (APP-015, APP-016). */
  execute({ kind, domain, env_id, input, decision }: StepRequest): StepResponse {
    if (domain !== 'app' || !STEP_KINDS.some(known => known === kind))
      throw this.#ctx.problem('unknown_step_kind', { detail: `The app store answers ${STEP_KINDS.join(', ')} of the domain app.` });
    if (kind !== 'ApprovalReviewStep') return { status: 'completed', output: { stub: true } };
    if (decision === undefined) {
      const { name: asked } = input as { readonly name?: unknown };
      const name = typeof asked === 'string' ? asked : 'an application';
      return {
        status: 'paused',
        delegate: {
          kind: 'manual_decision',
          title: `Install ${name}?`.slice(0, 200),
          assignee_group: `platform:env:${env_id}:admins`,
          expires_s: SEVEN_DAYS_S,
        },
      };
    }
    if (decision.outcome === 'approved') return { status: 'completed', output: { approved_by: decision.by } };
    return { status: 'failed', error: { code: 'rejected', message: decision.comment ?? 'The install was declined.', retryable: false } };
  }

  /** The run is through: the install goes on, in the transaction in which that is noted. */
  async completed({
    payload,
  }: Delivery<{ readonly run_id: string; readonly service: string; readonly idempotency_key: string }>): Promise<void> {
    const row = await this.#ofRun(payload);
    if (!row) return;
    await this.#ctx.db.tx(async tx => {
      const goesOn = await this.#instances.change(tx, row, {
        from: ['onboarding'],
        set: { status: 'provisioning', workflow_run_id: payload.run_id, leased_until: null },
        told: 'updated',
      });
      if (goesOn) await tx.enqueue('settle', { instance_id: row.instance_id }, { key: row.instance_id, envId: row.env_id });
    });
  }

  async failed({
    payload,
  }: Delivery<{
    readonly run_id: string;
    readonly service: string;
    readonly idempotency_key: string;
    readonly code: string;
  }>): Promise<void> {
    const row = await this.#ofRun(payload);
    if (!row) return;
    await this.#ctx.db.tx(async tx => {
      const set = {
        status: 'rejected',
        open: false,
        workflow_run_id: payload.run_id,
        leased_until: null,
        last_error: `The onboarding ended: ${payload.code}.`,
      };
      const ended = await this.#instances.change(tx, row, { from: ['onboarding'], set, told: 'failed' });
      if (!ended) return;
      await tx.cancel('settle', row.instance_id);
      await tx.sql`update domain_bindings set status = 'removed', updated_at = ${this.#ctx.clock.now()}
        where instance_id = ${row.instance_id} and status <> 'removed'`;
    });
  }

  /** By the key that this service gave it: the run may be over before its number is written down here. */
  async #ofRun({
    service,
    idempotency_key,
  }: {
    readonly service: string;
    readonly idempotency_key: string;
  }): Promise<InstanceRow | undefined> {
    if (service !== 'app') return undefined;
    const { sql } = this.#ctx.db;
    const [row] = await selectInstances(sql, sql`where instance_id::text = ${idempotency_key}`);
    return row;
  }
}
