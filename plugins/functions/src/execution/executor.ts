import { setTimeout as delay } from 'node:timers/promises';
import { type Caller, isProblem, nameOf, type RequestOf, type TaskRun } from '@platform/sdk';
import type { functions } from '../../contract/index.ts';
import type { Execute, Executed, ExecutionDetail, Module } from '../../contract/schema.ts';
import type { FuncContext } from '../context.ts';
import type { Enablement } from '../enablement.ts';
import type { Modules } from '../modules/modules.ts';
import type { ExecutionRecords, Row } from './execution-records.ts';
import type { ExecutionSlots } from './execution-slots.ts';
import type { HostCalls } from './host-calls.ts';
import type { Measurements } from './measurements.ts';
import type { EnvironmentLimits } from './limits.ts';
import type { Attempt } from './attempt.ts';
import type { Runner } from './runner.ts';
import { MAX_BYTES } from './sizes.ts';

type Of<R extends keyof (typeof functions)['routes']> = RequestOf<typeof functions, R>;
export interface ExecutorParts {
  readonly modules: Modules;
  readonly records: ExecutionRecords;
  readonly runner: Runner;
  readonly calls: HostCalls;
  readonly limits: EnvironmentLimits;
  readonly enablement: Enablement;
  readonly slots: ExecutionSlots;
  readonly measurements: Measurements;
}

const WAIT_MS = 40_000;

/** Executions over HTTP: what may run, once for each key, and what becomes of it (G-FUNC-03, G-FUNC-04). */
export class Executor {
  readonly #ctx: FuncContext;
  readonly #parts: ExecutorParts;
  readonly #running = new Map<string, Promise<Row>>();

  constructor(ctx: FuncContext, parts: ExecutorParts) {
    [this.#ctx, this.#parts] = [ctx, parts];
  }

  /** Executions under way in this process. */
  get running(): number {
    return this.#running.size;
  }

  async pinned({ env, params, body, caller }: Of<'executeModule'>): Promise<Executed> {
    await this.#parts.enablement.require(env);
    const module = await this.#parts.modules.get(env, params.module_id);
    if (module.status === 'draft' && module.owner !== nameOf(caller as Caller))
      throw this.#ctx.problem('module_draft', { detail: 'Drafts are executed by their owner alone.' });
    return this.#execute(module, body, `module ${module.module_id}`);
  }

  async product({ env, params, query, body }: Of<'executeProduct'>): Promise<Executed> {
    await this.#parts.enablement.require(env);
    const domain = query.domain ?? null;
    const active = await this.#ctx.db.sql<{ module_id: string }[]>`
      select module_id from products where env_id = ${env} and product = ${params.product_id}
        and (${domain}::text is null or domain = ${domain}) limit 2`;
    if (active.length > 1) throw this.#ctx.problem('domain_required', { detail: 'Name the domain in the query.' });
    if (!active[0]) throw this.#ctx.problem('no_active_version', { detail: `No version of ${params.product_id} is active here.` });
    const module = await this.#parts.modules.get(env, active[0].module_id);
    return this.#execute(module, body, `product ${module.domain}/${module.product}`);
  }

  async #execute(module: Module, request: Execute, target: string): Promise<Executed> {
    const { records, runner, calls, slots } = this.#parts;
    calls.offer(request, module.domain);
    runner.requireSound(module);
    if (JSON.stringify(request.context).length > MAX_BYTES)
      throw this.#ctx.problem('context_too_large', { detail: `A context has at most ${MAX_BYTES} bytes.` });
    if (!module.hooks.includes(request.hook))
      throw this.#ctx.problem('trap', { detail: `The module has no hook ${request.hook}; it has ${module.hooks.join(', ')}.` });
    using _ = await slots.take(module.env_id);
    const { row, fresh } = await records.begin(module, request, target);
    if (fresh) return this.#answer(await this.#attempt(row, module), false);
    return this.#answer(row.status === 'running' ? await this.#wait(row) : row, true);
  }

  /** Runs one try and writes it down. A caller that asks for the same meanwhile waits for it. */
  #attempt(row: Row, module: Module): Promise<Row> {
    const work = this.#try(row, module).finally(() => this.#running.delete(row.execution_id));
    this.#running.set(row.execution_id, work);
    return work;
  }

  async #try(row: Row, module: Module): Promise<Row> {
    const { runner, records, limits, measurements } = this.#parts;
    let attempt: Attempt;
    try {
      attempt = await runner.attempt(module, row.request, { executionId: row.execution_id, limits: await limits.of(row.env_id) });
    } catch (err) {
      this.#ctx.log.warn({ execution_id: row.execution_id, err }, 'an execution could not begin');
      attempt = {
        ok: false,
        result: null,
        code: 'execution_timeout',
        detail: 'The module could not be read in time.',
        fuelUsed: 0,
        memoryBytes: 0,
        durationMs: 0,
        logs: [],
        calls: [],
      };
    }
    this.#count(attempt);
    measurements.add(row, attempt);
    return records.finish(row, attempt);
  }

  /** Sums since this process began (FUN-035). */
  #count({ ok, fuelUsed, durationMs }: Attempt): void {
    const { metrics } = this.#ctx;
    metrics.executions.add(1);
    if (!ok) metrics.executions_failed.add(1);
    metrics.fuel_used.add(fuelUsed);
    metrics.duration_ms.add(durationMs);
  }

  /** A replay during the run waits for it, in whatever process it is (G-FUNC-04). */
  async #wait(row: Row): Promise<Row> {
    const here = this.#running.get(row.execution_id);
    if (here) return here;
    const { clock } = this.#ctx;
    for (const until = clock.now().getTime() + WAIT_MS; clock.now().getTime() < until; ) {
      await delay(100);
      const now = await this.#parts.records.byId(row.execution_id);
      if (now && now.status !== 'running') return now;
    }
    throw this.#ctx.problem('execution_running', { detail: 'Ask again under the same key.', headers: { 'retry-after': '5' } });
  }

  #answer(row: Row, replayed: boolean): Executed {
    if (row.status !== 'completed') throw this.#failure(row);
    const { value = null, reject_reason, directives } = row.result ?? {};
    return {
      ...{ execution_id: row.execution_id, module_id: row.module_id, hook: row.hook, status: 'completed', result: value },
      ...(row.decision ? { decision: row.decision as 'accept' | 'reject' } : {}),
      ...(reject_reason === undefined ? {} : { reject_reason }),
      ...(directives === undefined ? {} : { directives }),
      ...{ fuel_used: row.fuel_used, memory_bytes: row.memory_bytes, duration_ms: row.duration_ms, replayed },
    };
  }

  #failure(row: Row): Error {
    const code = (row.code ?? 'execution_timeout') as NonNullable<Attempt['code']>;
    return this.#ctx.problem(code, {
      detail: row.detail ?? 'The execution failed.',
      extra: {
        execution_id: row.execution_id,
        ...(row.callback ? { callback: row.callback } : {}),
        retry: { attempt: row.attempts, next_at: row.next_at },
      },
    });
  }

  /** The task of a later try. */
  async retry({ execution_id }: { execution_id: string }, _: TaskRun): Promise<void> {
    const row = await this.#parts.records.take(execution_id);
    if (row) await this.#again(row);
  }

  async replay({ env, params }: Of<'replayExecution'>): Promise<ExecutionDetail> {
    await this.#parts.enablement.require(env);
    const row = await this.#parts.records.revive(env, params.execution_id);
    return detailOf(row.status === 'running' ? await this.#again(row) : row);
  }

  async #again(row: Row): Promise<Row> {
    const module = await this.#parts.modules.get(row.env_id, row.module_id).catch(error => {
      if (isProblem(error) && error.code === 'module_not_found') return undefined;
      throw error;
    });
    if (module) return this.#attempt(row, module);
    const gone: Attempt = {
      ok: false,
      result: null,
      code: 'trap',
      detail: 'Its module is gone.',
      fuelUsed: 0,
      memoryBytes: 0,
      durationMs: 0,
      logs: [],
      calls: [],
    };
    return this.#parts.records.finish(row, gone);
  }
}

/** A row as people see it. */
export function detailOf({ target: _, callback: __, result, request, ...row }: Row): ExecutionDetail {
  const { begun_at, current, ...shown } = row as typeof row & { begun_at: unknown; current: unknown };
  return { ...shown, request: request as unknown as Record<string, unknown>, result: result?.value ?? null };
}
