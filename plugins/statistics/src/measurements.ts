import type { Aggregate, Measurement } from '../contract/index.ts';
import type { Ctx } from './context.ts';
import type { Properties } from './properties.ts';

const FUTURE_MS = 5 * 60_000;
const PAST_MS = 7 * 24 * 3_600_000;
const BATCH = 5_000;
const PASSES = 20;

interface Summed {
  readonly property_id: string;
  readonly env_id: string;
  readonly minute: Date;
  readonly metrics: Record<string, number>;
}

/** What was measured, and its sums by minute (G-STAT-01, G-STAT-03). */
export class Measurements {
  readonly #ctx: Ctx;
  readonly #properties: Properties;

  constructor(ctx: Ctx, properties: Properties) {
    this.#ctx = ctx;
    this.#properties = properties;
  }

  /** Kept before the answer; a key counts once for its property. */
  async record({ property_id, metric, value, at, dimensions = {}, idempotency_key }: Measurement): Promise<{ accepted: true }> {
    const { sql } = this.#ctx.db;
    const now = this.#ctx.clock.now().getTime();
    const measured = at === undefined ? now : Date.parse(at);
    if (measured > now + FUTURE_MS || measured < now - PAST_MS)
      throw this.#ctx.problem('measured_in_future', { detail: 'at lies between seven days ago and five minutes from now.' });
    const [known] = await sql<object[]>`select 1 from properties where property_id = ${property_id}`;
    if (!known) throw this.#ctx.problem('property_not_found', { detail: 'Provision the property first.' });
    const row = {
      measurement_id: this.#ctx.platform.newId(),
      property_id,
      metric,
      value,
      at: new Date(measured).toISOString(),
      dimensions: sql.json(dimensions),
      idempotency_key: idempotency_key ?? null,
    };
    await sql`insert into measurements ${sql.row(row)} on conflict do nothing`;
    return { accepted: true };
  }

  /** Adds what was not summed yet of minutes that are over, and tells each minute that moved, in one transaction for each batch. */
  async sumUp(signal: AbortSignal): Promise<void> {
    for (let pass = 0; pass < PASSES && !signal.aborted; pass++) if ((await this.#batch()) < BATCH) return;
  }

  async aggregates(env: string, propertyId: string, query: { limit?: number; cursor?: string }) {
    const { property_id } = await this.#properties.get(env, propertyId);
    const { db, page } = this.#ctx;
    return page(
      query,
      { list: `aggregates ${property_id}`, order: { minute: 'time', metric: 'text' } },
      ({ where, order, limit }) => db.sql<Aggregate[]>`
        select property_id, minute, metric, value, count from aggregates where property_id = ${property_id} and ${where} order by ${order}
          limit ${limit}`,
    );
  }

  #batch(): Promise<number> {
    const before = new Date(Math.floor(this.#ctx.clock.now().getTime() / 60_000) * 60_000).toISOString();
    return this.#ctx.db.tx(async tx => {
      const taken = await tx.sql<{ property_id: string; minute: string; metric: string; value: number; count: number }[]>`
        with due as (select measurement_id from measurements where not summed and at < ${before} order by at limit ${BATCH}
          for update skip locked),
             moved as (update measurements set summed = true where measurement_id in (select measurement_id from due)
               returning property_id, date_trunc('minute', at) as minute, metric, value)
        select property_id, minute, metric, sum(value) as value, count(*)::int as count from moved group by property_id, minute, metric`;
      if (taken.length === 0) return 0;
      await tx.sql`
        insert into aggregates (property_id, minute, metric, value, count)
        select property_id, minute, metric, value, count from jsonb_to_recordset(${tx.sql.json(taken)}) as row(property_id uuid,
          minute timestamptz, metric text, value float8, count int)
        on conflict (property_id, minute, metric) do update set value = aggregates.value + excluded.value,
          count = aggregates.count + excluded.count`;
      const windows = await tx.sql<Summed[]>`
        select a.property_id, p.env_id, a.minute, jsonb_object_agg(a.metric, a.value) as metrics from aggregates a join properties p
          using (property_id)
        where (a.property_id, a.minute) in (select property_id, minute
          from jsonb_to_recordset(${tx.sql.json(taken)}) as row(property_id uuid, minute timestamptz)) group by 1, 2, 3`;
      for (const { property_id, env_id, minute, metrics } of windows) {
        const from = new Date(minute);
        await tx.emit('platform:stat.aggregate.updated', env_id, {
          property_id,
          window: { from: from.toISOString(), to: new Date(from.getTime() + 60_000).toISOString() },
          metrics,
        });
      }
      return taken.reduce((sum, { count }) => sum + count, 0);
    });
  }
}
