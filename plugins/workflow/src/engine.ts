import type { TaskRun } from '@platform/sdk';
import type { Ctx, WorkflowTx } from './context.ts';
import type { RunRecords, RunRow, StepRow } from './run-records.ts';
import type { StepCall, StepOutcome } from './step-call.ts';

type FailedStep = Extract<StepOutcome, { kind: 'failed' }>;

/** Seconds after a call that failed (G-WFL-01). */
const PAUSES_S = [1, 5, 30];

/**
 * Takes runs from step to step. A step is a task: its call is made outside any transaction, and what came of it is written, with the
 * next task and the event, in one, which also ends the task. A process that dies anywhere leaves a task that makes the same call under
 * the same key.
 */
export class Engine {
  readonly #ctx: Ctx;
  readonly #records: RunRecords;
  readonly #call: StepCall;

  constructor(ctx: Ctx, { records, call }: { records: RunRecords; call: StepCall }) {
    [this.#ctx, this.#records, this.#call] = [ctx, records, call];
  }

  async perform({ step_id }: { step_id: string }, task: TaskRun): Promise<void> {
    const { db } = this.#ctx;
    const before = await db.tx(tx => this.#records.locked(tx, step_id));
    if (!before || !isUnderWay(before)) return;
    const outcome = await this.#call.make(before.run, before.step, task);
    await db.tx(async tx => {
      const now = await this.#records.locked(tx, step_id);
      // Cancelled, deleted or written by another process meanwhile: that counts.
      if (now && isUnderWay(now) && now.step.attempts === before.step.attempts) await this.#apply(tx, now, outcome);
      await task.finish(tx);
    });
  }

  async #apply(tx: WorkflowTx, { run, step }: { run: RunRow; step: StepRow }, outcome: StepOutcome): Promise<void> {
    const now = this.#ctx.clock.now();
    const { step_id } = step;
    await tx.sql`update steps set attempts = attempts + 1 where step_id = ${step_id}`;
    if (outcome.kind === 'failed') return this.#failed(tx, { run, step }, outcome);
    if (outcome.kind === 'paused') {
      const { title, assignee_group, expires_s } = outcome.delegate;
      const expires_at = new Date(now.getTime() + expires_s * 1_000);
      const change = { status: 'paused', title, assignee_group, paused_at: now, expires_at, code: null, detail: null };
      await tx.sql`update steps set ${tx.sql.row(change)} where step_id = ${step_id}`;
      await tx.sql`update runs set status = 'paused', updated_at = ${now} where run_id = ${run.run_id}`;
      return;
    }
    const output = outcome.output === null ? null : tx.sql.json(outcome.output);
    const change = { status: 'completed', output, code: null, detail: null, finished_at: now };
    await tx.sql`update steps set ${tx.sql.row(change)} where step_id = ${step_id}`;
    const [next] = await tx.sql<{ step_id: string }[]>`
      update steps set status = 'running' where run_id = ${run.run_id} and position = ${step.position + 1} returning step_id`;
    if (!next) return this.#records.complete(tx, run);
    await tx.sql`update runs set updated_at = ${now} where run_id = ${run.run_id}`;
    await this.#records.proceed(tx, run, next.step_id);
  }

  async #failed(tx: WorkflowTx, { run, step }: { run: RunRow; step: StepRow }, { code, detail, retryable }: FailedStep): Promise<void> {
    const { clock, log } = this.#ctx;
    const pause = retryable ? PAUSES_S[step.attempts] : undefined;
    const fields = { run_id: run.run_id, step_id: step.step_id, kind: step.kind, attempt: step.attempts + 1, code };
    if (pause === undefined) {
      log.warn(fields, 'a step failed, and its run with it');
      return this.#records.fail(tx, run, { code, detail, step_id: step.step_id });
    }
    log.info({ ...fields, again_s: pause }, 'a step failed and is tried again');
    await tx.sql`update steps set code = ${code}, detail = ${detail} where step_id = ${step.step_id}`;
    await this.#records.proceed(tx, run, step.step_id, new Date(clock.now().getTime() + pause * 1_000));
  }
}

const isUnderWay = ({ run, step }: { run: RunRow; step: StepRow }): boolean => run.status === 'running' && step.status === 'running';
