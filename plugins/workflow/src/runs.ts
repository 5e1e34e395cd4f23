import type { MachineCaller } from '@platform/sdk';
import type { NewRun, RunDetail } from '../contract/schema.ts';
import type { Ctx, Of, WorkflowTx } from './context.ts';
import { type Definition, definitionOf } from './definitions.ts';
import { requireFitting } from './run-input.ts';
import type { RunRecords, RunRow } from './run-records.ts';
import type { StepHandlers } from './step-handlers.ts';

interface Beginning {
  readonly body: NewRun;
  readonly caller: MachineCaller;
  readonly domain: string;
  readonly steps: readonly string[];
}

/** Runs as they are started and cancelled (G-WFL-01). */
export class Runs {
  readonly #ctx: Ctx;
  readonly #records: RunRecords;
  readonly #handlers: StepHandlers;

  constructor(ctx: Ctx, { records, handlers }: { records: RunRecords; handlers: StepHandlers }) {
    [this.#ctx, this.#records, this.#handlers] = [ctx, records, handlers];
  }

  /** The same key of the same service in the same environment is the same run. */
  async start({ body, caller }: Of<'startRun'>): Promise<{ run_id: string }> {
    const definition = definitionOf(body.workflow);
    if (!definition) throw this.#ctx.problem('unknown_workflow', { detail: 'The workflow there is: app-install.' });
    requireFitting(this.#ctx, body.input);
    const steps = await this.#stepsOf(definition, body, caller);
    return this.#ctx.db.tx(async tx => {
      // A caller that starts a run in an environment waits for those before: so the key is asked for once, and the count is right.
      await tx.sql`select pg_advisory_xact_lock(hashtextextended(${`workflow ${body.env_id}`}, 0))`;
      const known = await this.#known(tx, body, caller.service);
      if (known) return { run_id: known };
      await this.#requireRoom(tx, body.env_id);
      return this.#begin(tx, { body, caller, domain: definition.domain, steps });
    });
  }

  async cancel({ env, params, caller }: Of<'cancelRun'>): Promise<RunDetail> {
    const { run_id } = await this.#records.get(env, params.run_id, caller);
    await this.#ctx.db.tx(async tx => {
      const [run] = await tx.sql<RunRow[]>`select * from runs where run_id = ${run_id} for update`;
      if (run?.status === 'failed' && run.code === 'cancelled') return;
      if (!run || run.finished_at !== null) throw this.#ctx.problem('run_finished', { detail: `It is ${run?.status ?? 'gone'}.` });
      const steps = await tx.sql<{ step_id: string }[]>`
        select step_id from steps where run_id = ${run_id} and status in ('running', 'paused')`;
      for (const { step_id } of steps) await tx.cancel('step', step_id);
      await this.#records.fail(tx, run, { code: 'cancelled', detail: null });
      await tx.audit({ action: 'workflow.run.cancelled', envId: env, caller, resource: { type: 'workflow_run', id: run_id } });
    });
    return this.#records.detail(env, run_id, caller);
  }

  async #stepsOf(definition: Definition, { workflow, input }: NewRun, caller: MachineCaller): Promise<readonly string[]> {
    const { problem } = this.#ctx;
    const handler = await this.#handlers.of(definition.domain);
    if (!handler)
      throw problem('domain_unregistered', { detail: `The service of the domain ${definition.domain} has not registered itself yet.` });
    if (handler.service !== caller.service) throw problem('run_denied', { detail: `${workflow} is started by ${handler.service}.` });
    const steps = definition.stepsOf(input);
    if (!steps) throw problem('input_refused', { detail: 'input.steps names 1 to 32 kinds of steps, in order.' });
    const unknown = steps.find(kind => !handler.kinds.includes(kind));
    if (unknown !== undefined) throw problem('unknown_step_kind', { detail: `${definition.domain} answers ${handler.kinds.join(', ')}.` });
    return steps;
  }

  async #known({ sql }: WorkflowTx, { workflow, env_id, input, idempotency_key }: NewRun, service: string): Promise<string | undefined> {
    const [run] = await sql<{ run_id: string; same: boolean }[]>`
      select run_id, workflow = ${workflow} and input = ${sql.json(input)}::jsonb as same from runs
      where env_id = ${env_id} and service = ${service} and idempotency_key = ${idempotency_key}`;
    if (run?.same === false)
      throw this.#ctx.problem('key_reused', { detail: 'The key was used with another workflow or input; take a new one.' });
    return run?.run_id;
  }

  async #requireRoom({ sql }: WorkflowTx, envId: string): Promise<void> {
    const most = this.#ctx.config.runsPerEnvironment;
    const [{ count }] = await sql<[{ count: number }]>`
      select count(*)::int as count from runs where env_id = ${envId} and finished_at is null`;
    if (count < most) return;
    this.#ctx.metrics.runs_refused.add(1);
    this.#ctx.log.warn({ env_id: envId, most }, 'too many workflow runs are under way');
    throw this.#ctx.problem('too_many_runs', {
      detail: `At most ${most} runs are under way in an environment at once.`,
      headers: { 'retry-after': '60' },
    });
  }

  async #begin(tx: WorkflowTx, { body, caller, domain, steps }: Beginning): Promise<{ run_id: string }> {
    const { clock, platform } = this.#ctx;
    const [run_id, now] = [platform.newId(), clock.now()];
    const { workflow, env_id, idempotency_key } = body;
    const asked = { workflow, domain, service: caller.service, idempotency_key, input: tx.sql.json(body.input) };
    const row = { run_id, env_id, ...asked, status: 'running', created_at: now, updated_at: now };
    const [run] = await tx.sql<[RunRow]>`insert into runs ${tx.sql.row(row)} returning *`;
    const ids = steps.map(() => platform.newId());
    for (const [position, kind] of steps.entries()) {
      const step = { step_id: ids[position], run_id, position, kind, status: position === 0 ? 'running' : 'waiting' };
      await tx.sql`insert into steps ${tx.sql.row(step)}`;
    }
    await this.#records.proceed(tx, run, ids[0] as string);
    await tx.audit({
      action: 'workflow.run.started',
      envId: env_id,
      caller,
      resource: { type: 'workflow_run', id: run_id },
      details: { workflow },
    });
    return { run_id };
  }
}
