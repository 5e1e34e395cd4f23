import type { Execute, Execution, ExecutionDetail, Figures, Module } from '../../contract/schema.ts';
import type { FuncContext } from '../context.ts';
import type { Attempt } from './attempt.ts';

export interface Row extends Omit<ExecutionDetail, 'request' | 'calls'> {
  readonly request: Execute;
  readonly result: { readonly value: unknown; readonly reject_reason?: string; readonly directives?: { type: string }[] } | null;
  readonly callback: { path: string; status: number } | null;
  readonly calls: { name: string; path: string; status: number; ms: number }[];
  readonly target: string;
}
export type Begun = { readonly row: Row; readonly fresh: boolean };

/** Seconds after a try that failed (G-FUNC-06). */
const BACKOFF_S = [1, 5, 30];

/** Executions as they are written down: one row for each key, with the last try's outcome. */
export class ExecutionRecords {
  readonly #ctx: FuncContext;

  constructor(ctx: FuncContext) {
    this.#ctx = ctx;
  }

  /** A new execution, or the one that this key already names (FUN-012). */
  async begin(module: Module, request: Execute, target: string): Promise<Begun> {
    const { db, platform, clock, config } = this.#ctx;
    for (;;) {
      const now = clock.now();
      const { env_id, module_id, domain, product } = module;
      const fresh = {
        ...{
          execution_id: platform.newId(),
          env_id,
          module_id,
          domain,
          product,
          hook: request.hook,
          target,
          idempotency_key: request.idempotency_key,
        },
        // With the parameters as they are now, so that a reader can try the very same input again.
        ...{ request: db.sql.json({ ...request, parameters: { ...module.parameters, ...request.parameters } }) },
        ...{ begun_at: now, created_at: now },
      };
      const [made] = await db.sql<
        Row[]
      >`insert into executions ${db.sql.row(fresh)} on conflict (env_id, target, hook, idempotency_key) where current do nothing
        returning *`;
      if (made) return { row: made, fresh: true };
      const since = new Date(now.getTime() - config.dedupeS * 1_000);
      const [found] = await db.sql<Row[]>`
        select * from executions where env_id = ${env_id} and target = ${target} and hook = ${request.hook}
          and idempotency_key = ${request.idempotency_key} and current`;
      if (found && Date.parse(found.created_at) > since.getTime()) return { row: found, fresh: false };
      if (found) await db.sql`update executions set current = false where execution_id = ${found.execution_id} and status <> 'running'`;
      if (found?.status === 'running') return { row: found, fresh: false };
    }
  }

  /** Writes a try's outcome with its events in one transaction, and queues the next one (FUN-014, FUN-016). */
  async finish(row: Row, attempt: Attempt): Promise<Row> {
    const { db, clock } = this.#ctx;
    const attempts = row.attempts + 1;
    const pause = BACKOFF_S[attempts - 1];
    const dead = !attempt.ok && pause === undefined;
    const status = attempt.ok ? 'completed' : dead ? 'dead_lettered' : 'failed';
    const now = clock.now();
    const nextAt = status === 'failed' ? new Date(now.getTime() + (pause as number) * 1_000) : null;
    const kept = attempt.ok
      ? {
          value: attempt.result,
          ...(attempt.rejectReason === undefined ? {} : { reject_reason: attempt.rejectReason }),
          ...(attempt.directives ? { directives: attempt.directives } : {}),
        }
      : null;
    return db.tx(async tx => {
      const change = {
        ...{
          status,
          attempts,
          next_at: nextAt,
          finished_at: now,
          result: kept === null ? null : tx.sql.json(kept),
          decision: attempt.decision ?? null,
          code: attempt.code ?? null,
        },
        ...{
          detail: attempt.detail ?? null,
          callback: attempt.callback ? tx.sql.json(attempt.callback) : null,
          fuel_used: attempt.fuelUsed,
          memory_bytes: attempt.memoryBytes,
        },
        ...{
          duration_ms: attempt.durationMs,
          logs: tx.sql.json(attempt.logs.map(line => line.replaceAll('\0', ''))),
          calls: tx.sql.json(attempt.calls),
        },
      };
      const [written] = await tx.sql<
        Row[]
      >`update executions set ${tx.sql.row(change)} where execution_id = ${row.execution_id} and status = 'running' returning *`;
      // Somebody else took it over, or its environment is gone: their outcome counts.
      if (!written) return (await this.byId(row.execution_id)) ?? row;
      const { execution_id, module_id, domain, product, hook, env_id } = row;
      const told = {
        execution_id,
        module_id,
        domain,
        product,
        hook,
        ...(attempt.code ? { code: attempt.code } : {}),
        fuel_used: attempt.fuelUsed,
        duration_ms: attempt.durationMs,
      };
      await tx.emit(attempt.ok ? 'platform:func:execution:completed' : 'platform:func:execution:failed', env_id, told);
      if (dead) await tx.emit('platform:func:execution:dead_lettered', env_id, told);
      if (nextAt) await tx.enqueue('retry', { execution_id }, { key: execution_id, at: nextAt, envId: env_id });
      return written;
    });
  }

  /** Takes a failed execution, or one whose process is gone, for another try; nothing when somebody else has it. */
  async take(executionId: string): Promise<Row | undefined> {
    const [row] = await this.#ctx.db.sql<Row[]>`
      update executions set status = 'running', begun_at = ${this.#ctx.clock.now()} where execution_id = ${executionId}
        and status = 'failed' returning *`;
    return row;
  }

  /** A dead letter begins anew, with all its tries (G-FUNC-06). */
  async revive(env: string, executionId: string): Promise<Row> {
    const found = await this.get(env, executionId);
    if (found.status !== 'dead_lettered') throw this.#ctx.problem('execution_not_dead', { detail: `It is ${found.status}.` });
    const [row] = await this.#ctx.db.sql<Row[]>`
      update executions set status = 'running', attempts = 0, begun_at = ${this.#ctx.clock.now()} where execution_id = ${executionId}
        and status = 'dead_lettered' returning *`;
    return row ?? found;
  }

  async byId(executionId: string): Promise<Row | undefined> {
    const [row] = await this.#ctx.db.sql<Row[]>`select * from executions where execution_id = ${executionId}`;
    return row;
  }

  async get(env: string, executionId: string): Promise<Row> {
    const [row] = await this.#ctx.db.sql<Row[]>`select * from executions where env_id = ${env} and execution_id = ${executionId}`;
    if (!row) throw this.#ctx.problem('execution_not_found', { detail: 'This environment has no execution of that number.' });
    return row;
  }

  list(
    env: string,
    { status, product, hook, ...query }: { status?: string; product?: string; hook?: string; limit?: number; cursor?: string },
  ) {
    const { db, page } = this.#ctx;
    const [s, p, h] = [status ?? null, product ?? null, hook ?? null];
    return page(
      query,
      { list: `executions ${env} ${s} ${p} ${h}`, order: { created_at: 'time', execution_id: 'id' } },
      ({ where, order, limit }) => db.sql<Execution[]>`
        select execution_id, module_id, env_id, domain, product, hook, status, code, detail, decision, attempts, next_at, fuel_used,
          memory_bytes, duration_ms, idempotency_key, created_at,
          finished_at
        from executions
        where env_id = ${env} and (${s}::text is null or status = ${s}) and (${p}::text is null or product = ${p})
          and (${h}::text is null or hook = ${h}) and ${where}
        order by ${order} limit ${limit}`,
    );
  }

  async figures(env: string): Promise<Figures> {
    const { sql } = this.#ctx.db;
    const since = new Date(this.#ctx.clock.now().getTime() - 86_400_000);
    const products = await sql<Figures['products']>`
      select product, count(*)::bigint as executions, count(*) filter (where status in ('failed', 'dead_lettered'))::bigint as failed,
        percentile_cont(0.5) within group (order by fuel_used)::float8 as fuel_p50,
          percentile_cont(0.95) within group (order by fuel_used)::float8 as fuel_p95,
        percentile_cont(0.5) within group (order by duration_ms)::float8 as duration_p50_ms,
          percentile_cont(0.95) within group (order by duration_ms)::float8 as duration_p95_ms
      from executions where env_id = ${env} and created_at > ${since} and status <> 'running' group by product order by executions desc
        limit 20`;
    const [counts] = await sql<{ dead: number; modules: number }[]>`
      select (select count(*) from executions where env_id = ${env} and status = 'dead_lettered')::bigint as dead, (select count(*)
        from modules where env_id = ${env})::bigint as modules`;
    const sum = (of: 'executions' | 'failed') => products.reduce((total, each) => total + each[of], 0);
    return {
      executions: sum('executions'),
      failed: sum('failed'),
      dead_letters: counts?.dead ?? 0,
      modules: counts?.modules ?? 0,
      products: [...products],
    };
  }

  /** Executions whose process went away in the middle are failed tries: they are tried again. */
  async recover(): Promise<void> {
    const before = new Date(this.#ctx.clock.now().getTime() - 120_000);
    const rows = await this.#ctx.db.sql<Row[]>`select * from executions where status = 'running' and begun_at < ${before} limit 200`;
    for (const row of rows) {
      const lost = {
        ok: false,
        result: null,
        code: 'execution_timeout',
        detail: 'Its process went away.',
        fuelUsed: 0,
        memoryBytes: 0,
        durationMs: 0,
        logs: [],
        calls: [],
      } as const;
      await this.finish(row, lost);
    }
  }

  async forget(): Promise<void> {
    const now = this.#ctx.clock.now().getTime();
    const [dead, done] = [new Date(now - 30 * 86_400_000), new Date(now - Math.max(7 * 86_400_000, this.#ctx.config.dedupeS * 1_000))];
    await this.#ctx.db
      .sql`delete from executions where (status = 'completed' and created_at < ${done}) or (status <> 'running' and created_at < ${dead})`;
  }
}
