import type { Caller } from '@platform/sdk';
import type { Run, RunDetail, Step } from '../contract/schema.ts';
import type { Ctx, WorkflowTx } from './context.ts';

export interface RunRow extends Run {
  readonly domain: string;
  readonly input: Readonly<Record<string, unknown>>;
}
export type StepRow = Step & { readonly paused_at: string | null };

const KEPT_MS = 90 * 86_400_000;
const SWEEP = 1_000;

/** A run is locked by its row: its steps, its task and its event are written under it. */
export class RunRecords {
  readonly #ctx: Ctx;

  constructor(ctx: Ctx) {
    this.#ctx = ctx;
  }

  /** A workload sees what it started, a person what is in the environment. Throws `run_not_found`. */
  async get(env: string, runId: string, caller: Caller): Promise<Run> {
    const own = startedBy(caller);
    const [run] = await this.#ctx.db.sql<Run[]>`
      select run_id, workflow, env_id, service, status, code, detail, idempotency_key, created_at, updated_at, finished_at
      from runs where env_id = ${env} and run_id = ${runId} and (${own}::text is null or service = ${own})`;
    if (!run) throw this.#ctx.problem('run_not_found', { detail: 'This environment has no run of that number.' });
    return run;
  }

  async detail(env: string, runId: string, caller: Caller): Promise<RunDetail> {
    const run = await this.get(env, runId, caller);
    return { ...run, steps: await this.steps(run.run_id) };
  }

  async steps(runId: string): Promise<Step[]> {
    return [
      ...(await this.#ctx.db.sql<Step[]>`
        select step_id, run_id, position, kind, status, attempts, output, code, detail, title, assignee_group, expires_at, decision,
          finished_at
        from steps where run_id = ${runId} order by position`),
    ];
  }

  list(
    env: string,
    { status, workflow, ...query }: { status?: string; workflow?: string; limit?: number; cursor?: string },
    caller: Caller,
  ) {
    const { db, page } = this.#ctx;
    const [s, w, own] = [status ?? null, workflow ?? null, startedBy(caller)];
    return page(
      query,
      { list: `runs ${env} ${s} ${w} ${own}`, order: { created_at: 'time', run_id: 'id' } },
      ({ where, order, limit }) => db.sql<Run[]>`
        select run_id, workflow, env_id, service, status, code, detail, idempotency_key, created_at, updated_at, finished_at from runs
        where env_id = ${env} and (${s}::text is null or status = ${s}) and (${w}::text is null or workflow = ${w})
          and (${own}::text is null or service = ${own}) and ${where}
        order by ${order} limit ${limit}`,
    );
  }

  /** The run and the step under lock; undefined when they are gone. */
  async locked({ sql }: WorkflowTx, stepId: string): Promise<{ run: RunRow; step: StepRow } | undefined> {
    const [run] = await sql<RunRow[]>`select * from runs where run_id = (select run_id from steps where step_id = ${stepId}) for update`;
    const [step] = await sql<StepRow[]>`select * from steps where step_id = ${stepId}`;
    return run && step && { run, step };
  }

  /** A step begins, or goes on: its task is queued with the change (WFL-001). */
  async proceed(tx: WorkflowTx, run: Run, stepId: string, at = this.#ctx.clock.now()): Promise<void> {
    await tx.enqueue('step', { step_id: stepId }, { key: stepId, at, envId: run.env_id });
  }

  /** The run has no more steps: its end and the event of it are one transaction. */
  async complete(tx: WorkflowTx, { run_id, env_id, workflow, service, idempotency_key }: Run): Promise<void> {
    const now = this.#ctx.clock.now();
    await tx.sql`update runs set status = 'completed', updated_at = ${now}, finished_at = ${now} where run_id = ${run_id}`;
    await tx.emit('platform:workflow:run:completed', env_id, { run_id, workflow, service, idempotency_key });
  }

  async fail(tx: WorkflowTx, run: Run, why: { code: string; detail: string | null; step_id?: string }): Promise<void> {
    const now = this.#ctx.clock.now();
    const { run_id, env_id, workflow, service, idempotency_key } = run;
    const { code, detail, step_id } = why;
    const failed = { status: 'failed', code, detail, finished_at: now };
    await tx.sql`update steps set ${tx.sql.row(failed)} where run_id = ${run_id} and status in ('running', 'paused')`;
    await tx.sql`update runs set ${tx.sql.row({ ...failed, updated_at: now })} where run_id = ${run_id}`;
    const told = { run_id, workflow, service, idempotency_key, code, ...(step_id === undefined ? {} : { step_id }) };
    await tx.emit('platform:workflow:run:failed', env_id, told);
  }

  async forget(signal: AbortSignal): Promise<void> {
    const before = new Date(this.#ctx.clock.now().getTime() - KEPT_MS);
    for (let gone = SWEEP; gone >= SWEEP && !signal.aborted; ) {
      const rows = await this.#ctx.db.sql<object[]>`
        delete from runs where run_id in (select run_id from runs where finished_at < ${before} limit ${SWEEP}) returning 1`;
      gone = rows.length;
    }
  }
}

const startedBy = (caller: Caller): string | null => (caller.kind === 'machine' ? caller.service : null);
