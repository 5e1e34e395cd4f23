import { type Caller, isProblem, type TaskRun } from '@platform/sdk';
import type { Firing } from '../contract/index.ts';
import type { FiringRecord, Schedule } from '../contract/schema.ts';
import type { Ctx, SchedulerTx } from './context.ts';
import { fireId } from './fire-id.ts';
import type { Schedules } from './schedules.ts';

interface DueRow {
  readonly name: string;
  readonly service: string;
  readonly env_id: string;
  readonly cron: string;
  readonly timezone: string;
  readonly next_at: string;
}
type Fired = Pick<DueRow, 'name' | 'service' | 'env_id'>;
type WaitingRow = FiringRecord & { readonly name: string; readonly service: string; readonly path: string; readonly env_id: string };
interface Outcome {
  readonly ok: boolean;
  readonly http_status: number | null;
  readonly code: string | null;
}

const BATCH = 50;
const KEPT = 50;
/** Seconds after a try that failed. */
const PAUSES_S = [1, 5, 30];
const TIMEOUT_MS = 10_000;
/** What a target says is not read; a little of it comes so that the connection can be used again. */
const MAX_BYTES = 65_536;

/** Firings of schedules: written with the schedule's next time in one transaction, and posted by a task of that transaction (SCH-002). */
export class Firings {
  readonly #ctx: Ctx;
  readonly #schedules: Schedules;

  constructor(ctx: Ctx, schedules: Schedules) {
    [this.#ctx, this.#schedules] = [ctx, schedules];
  }

  async list(name: string, caller: Caller): Promise<FiringRecord[]> {
    await this.#schedules.get(name, caller);
    return [
      ...(await this.#ctx.db.sql<FiringRecord[]>`
        select fire_id, fire_at, manual, status, attempts, http_status, code, finished_at from firings where name = ${name}
        order by fire_at desc, fire_id desc limit ${KEPT}`),
    ];
  }

  async runNow(name: string, caller: Caller): Promise<Schedule> {
    const schedule = await this.#schedules.get(name, caller);
    await this.#ctx.db.tx(async tx => {
      if (!(await this.#write(tx, schedule, { at: this.#ctx.clock.now(), kind: 'manual' }))) return;
      await tx.audit({ action: 'cron.schedule.run', envId: schedule.env_id, caller, resource: { type: 'schedule', id: name } });
    });
    return this.#schedules.get(name, caller);
  }

  /** Fires what is due, in steps. Of times that were missed the last one comes, once. */
  async due(signal: AbortSignal): Promise<void> {
    while (!signal.aborted && (await this.#some()) === BATCH);
  }

  async #some(): Promise<number> {
    const now = this.#ctx.clock.now();
    return this.#ctx.db.tx(async tx => {
      // What another process has in its hands moves on with that process.
      const rows = await tx.sql<DueRow[]>`
        select name, service, env_id, cron, timezone, next_at from schedules where not paused and next_at <= ${now}
        order by next_at limit ${BATCH} for update skip locked`;
      for (const row of rows) await this.#fire(tx, row, now);
      return rows.length;
    });
  }

  async #fire(tx: SchedulerTx, row: DueRow, now: Date): Promise<void> {
    const times = this.#ctx.cron(row.cron, row.timezone);
    // Zones come and go with the build of Node: what cannot be read any more rests, and says so.
    if (!times)
      this.#ctx.log.error(
        { schedule: row.name, code: 'schedule_unreadable' },
        'the times of a schedule cannot be read any more; it does not fire',
      );
    const last = times?.last(now)?.getTime() ?? 0;
    if (times) await this.#write(tx, row, { at: new Date(Math.max(last, Date.parse(row.next_at))), kind: 'due' });
    await tx.sql`update schedules set next_at = ${times?.next(now) ?? null} where name = ${row.name}`;
  }

  /** @returns false when this very firing is there already */
  async #write(tx: SchedulerTx, { name, service, env_id }: Fired, { at, kind }: { at: Date; kind: 'due' | 'manual' }): Promise<boolean> {
    const fire_id = fireId({ service, name }, at, kind);
    const [made] = await tx.sql<object[]>`
      insert into firings ${tx.sql.row({ fire_id, name, fire_at: at, manual: kind === 'manual' })} on conflict (fire_id) do nothing
        returning 1`;
    if (!made) return false;
    await tx.sql`
      delete from firings where name = ${name} and status <> 'waiting'
        and fire_id in (select fire_id from firings where name = ${name} order by fire_at desc, fire_id desc offset ${KEPT})`;
    await tx.enqueue('fire', { fire_id }, { key: fire_id, at: this.#ctx.clock.now(), envId: env_id });
    return true;
  }

  /** One try. What came of it is written, with the next try, in the transaction that ends the task. */
  async perform({ fire_id }: { fire_id: string }, task: TaskRun): Promise<void> {
    const { db } = this.#ctx;
    const [row] = await db.sql<WaitingRow[]>`
      select f.fire_id, f.name, f.fire_at, f.manual, f.status, f.attempts, f.http_status, f.code, f.finished_at, s.service, s.path, s.env_id
      from firings f join schedules s using (name) where f.fire_id = ${fire_id}`;
    if (row?.status !== 'waiting') return;
    const outcome = await this.#post(row, task);
    await db.tx(async tx => {
      await this.#written(tx, row, outcome);
      await task.finish(tx);
    });
  }

  async #post({ name, fire_id, fire_at, service, path, env_id }: WaitingRow, task: TaskRun): Promise<Outcome> {
    this.#ctx.metrics.firings.add(1);
    const body: Firing = { schedule: name, fire_id, fire_at };
    try {
      const { correlationId, signal } = task;
      const bounds = { timeoutMs: TIMEOUT_MS, maxBytes: MAX_BYTES, signal };
      const { status } = await this.#ctx.actions.callBack({ service, path, body, envId: env_id, correlationId, ...bounds });
      return { ok: status >= 200 && status < 300, http_status: status, code: status >= 200 && status < 300 ? null : 'target_refused' };
    } catch (error) {
      task.signal.throwIfAborted();
      return { ok: false, http_status: null, code: isProblem(error) ? error.code : 'target_timeout' };
    }
  }

  async #written(tx: SchedulerTx, row: WaitingRow, { ok, http_status, code }: Outcome): Promise<void> {
    const now = this.#ctx.clock.now();
    const pause = ok ? undefined : PAUSES_S[row.attempts];
    const status = ok ? 'done' : pause === undefined ? 'failed' : 'waiting';
    const change = { status, attempts: row.attempts + 1, http_status, code, finished_at: status === 'waiting' ? null : now };
    const [written] = await tx.sql<object[]>`
      update firings set ${tx.sql.row(change)} where fire_id = ${row.fire_id} and status = 'waiting' and attempts = ${row.attempts}
        returning 1`;
    if (!written || ok) return;
    this.#ctx.metrics.firings_failed.add(1);
    const fields = { schedule: row.name, fire_id: row.fire_id, attempt: row.attempts + 1, http_status, code };
    if (pause === undefined) return this.#ctx.log.warn(fields, 'a firing failed for good');
    this.#ctx.log.info({ ...fields, again_s: pause }, 'a firing failed and is tried again');
    await tx.enqueue(
      'fire',
      { fire_id: row.fire_id },
      { key: row.fire_id, at: new Date(now.getTime() + pause * 1_000), envId: row.env_id },
    );
  }
}
