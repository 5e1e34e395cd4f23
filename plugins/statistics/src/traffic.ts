import { errorsOf, readTraffic, SYSTEM, timedOf, type Traffic as Flushed } from '@platform/sdk';
import type { Traffic as Row } from '../contract/index.ts';
import type { Ctx } from './context.ts';

const CHANNELS = ['stat:metrics', 'stat:metrics:tls'];
const MINUTE = 60_000;
const DAY = 24 * 3_600_000;
const MOST_SERVICES = 500;
const KEPT_MINUTES = 5;

interface Sum {
  requests: number;
  waited: number;
  statuses: Record<string, number>;
  /** Of the median, weighed by the answers that have a time; of the tails, the worst. */
  p50: number;
  p95: number;
  p99: number;
}

/**
 * The traffic of the platform: every process hears what services flush and keeps the last minutes; of each minute that is over the first
 * process writes the row and tells of it, so that it is told once.
 */
export class Traffic {
  readonly #ctx: Ctx;
  readonly #minutes = new Map<number, Map<string, Sum>>();
  /** The last day that was looked at. */
  #day = 0;

  constructor(ctx: Ctx) {
    this.#ctx = ctx;
  }

  async listen(): Promise<void> {
    for (const channel of CHANNELS) this.#ctx.own(await this.#ctx.kv.subscribe(channel, message => this.take(message)));
  }

  /** Adds a flush. What is malformed, or of another time, is left out with a line in the log. */
  take(message: string): void {
    const flush = readTraffic(message);
    const minute = flush && Math.floor(Date.parse(flush.at) / MINUTE) * MINUTE;
    const now = this.#ctx.clock.now().getTime();
    if (!flush || minute === undefined || Math.abs(now - minute) > KEPT_MINUTES * MINUTE)
      return this.#ctx.log.debug({ size: message.length }, 'a flush of figures was left out');
    let services = this.#minutes.get(minute);
    if (!services) this.#minutes.set(minute, (services = new Map()));
    const known = services.get(flush.service);
    if (!known && services.size >= MOST_SERVICES) return;
    services.set(flush.service, added(known, flush));
  }

  /** Minutes that are over, and the day that is. */
  async rollUp(signal: AbortSignal): Promise<void> {
    const now = this.#ctx.clock.now().getTime();
    for (const [minute, services] of [...this.#minutes].sort(([left], [right]) => left - right)) {
      // A flush of the minute may still be on its way.
      if (minute + MINUTE + 10_000 > now) continue;
      signal.throwIfAborted();
      await this.#write(minute, services);
      this.#minutes.delete(minute);
    }
    // Its last minutes are written a little later than it ends.
    const over = Math.floor((now - KEPT_MINUTES * MINUTE) / DAY) * DAY - DAY;
    if (over === this.#day) return;
    await this.#writeDay(over);
    this.#day = over;
  }

  async figures() {
    const { sql } = this.#ctx.db;
    const items = await sql<{ at: string; requests: number; errors: number; p50: number; p95: number }[]>`
      select at, sum(requests)::int as requests, sum(errors)::int as errors,
        sum(p50_ms * (requests - waited)) / greatest(sum(requests - waited), 1) as p50, max(p95_ms) as p95
      from traffic where period = 'minute' and at > ${new Date(this.#ctx.clock.now().getTime() - 3_600_000).toISOString()} group by at
        order by at`;
    const last = items.at(-1);
    return {
      rps: rounded((last?.requests ?? 0) / 60),
      errors: last?.errors ?? 0,
      errors_by_minute: items.map(({ errors }) => errors),
      p50_ms: rounded(last?.p50 ?? 0),
      p95_ms: rounded(last?.p95 ?? 0),
      items: items.map(({ at, requests, errors }) => ({ at, requests, errors })),
    };
  }

  async byService(): Promise<{ items: Row[] }> {
    return {
      items: await this.#ctx.db.sql<Row[]>`
        select distinct on (service) at, service, requests, errors, p50_ms, p95_ms, p99_ms from traffic
        where period = 'minute' and at > ${new Date(this.#ctx.clock.now().getTime() - 3_600_000).toISOString()} order by service, at desc`,
    };
  }

  async #write(minute: number, services: ReadonlyMap<string, Sum>): Promise<void> {
    const at = new Date(minute).toISOString();
    const rows = [...services].map(([service, sum]) => ({ service, ...rowOf(sum) }));
    const fresh = await this.#ctx.db.tx(async tx => {
      const written = await tx.sql<{ service: string }[]>`
        insert into traffic (period, at, service, requests, waited, errors, statuses, p50_ms, p95_ms, p99_ms)
        select 'minute', ${at}, service, requests, waited, errors, statuses, p50_ms, p95_ms, p99_ms
        from jsonb_to_recordset(${tx.sql.json(rows)}) as row(service text, requests int, waited int, errors int, statuses jsonb,
          p50_ms float8, p95_ms float8, p99_ms float8)
        on conflict do nothing returning service`;
      if (written.length > 0) await tx.emit('platform:stat:traffic:snapshot', SYSTEM.envId, snapshotOf(at, rows));
      const own = new Set(written.map(({ service }) => service));
      return rows.filter(({ service }) => own.has(service));
    });
    await this.#publish('stat:rollups:minute', at, fresh);
  }

  /** Once for each day, from its minutes. */
  async #writeDay(day: number): Promise<void> {
    const [from, to] = [new Date(day).toISOString(), new Date(day + DAY).toISOString()];
    const rows = await this.#ctx.db.sql<
      {
        service: string;
        requests: number;
        waited: number;
        errors: number;
        statuses: Record<string, number>;
        p50_ms: number;
        p95_ms: number;
        p99_ms: number;
      }[]
    >`
      insert into traffic (period, at, service, requests, waited, errors, statuses, p50_ms, p95_ms, p99_ms)
      select 'day', ${from}, service, sum(requests)::int, sum(waited)::int, sum(errors)::int,
        (select jsonb_object_agg(key, total) from (select key, sum(value::int) as total
          from traffic inner_rows, jsonb_each_text(inner_rows.statuses)
          where inner_rows.period = 'minute' and inner_rows.service = t.service and inner_rows.at >= ${from} and inner_rows.at < ${to}
            group by key) sums),
        sum(p50_ms * (requests - waited)) / greatest(sum(requests - waited), 1), max(p95_ms), max(p99_ms)
      from traffic t where period = 'minute' and at >= ${from} and at < ${to} group by service
      on conflict do nothing returning service, requests, waited, errors, statuses, p50_ms, p95_ms, p99_ms`;
    await this.#publish('stat:rollups:day', from, rows);
  }

  async #publish(
    channel: string,
    at: string,
    rows: readonly {
      service: string;
      requests: number;
      waited: number;
      statuses: Record<string, number>;
      p50_ms: number;
      p95_ms: number;
      p99_ms: number;
    }[],
  ): Promise<void> {
    for (const { service, requests, waited, statuses, p50_ms, p95_ms, p99_ms } of rows)
      await this.#ctx.kv.call(
        'PUBLISH',
        channel,
        JSON.stringify({
          at,
          service,
          counts: { requests, ...(waited > 0 ? { waited } : {}) },
          statuses,
          latency_ms: { p50: p50_ms, p95: p95_ms, p99: p99_ms },
        }),
      );
  }
}

function added(known: Sum | undefined, { counts, statuses, latency_ms }: Flushed): Sum {
  const { requests } = counts;
  const timed = timedOf(counts);
  if (!known) return { requests, waited: requests - timed, statuses: { ...statuses }, ...latency_ms };
  const [before, total] = [timedOf(known), timedOf(known) + timed];
  for (const [name, count] of Object.entries(statuses)) known.statuses[name] = (known.statuses[name] ?? 0) + count;
  return {
    requests: known.requests + requests,
    waited: known.waited + requests - timed,
    statuses: known.statuses,
    p50: total === 0 ? 0 : (known.p50 * before + latency_ms.p50 * timed) / total,
    p95: Math.max(known.p95, latency_ms.p95),
    p99: Math.max(known.p99, latency_ms.p99),
  };
}

const rowOf = ({ requests, waited, statuses, p50, p95, p99 }: Sum) => ({
  requests: Math.round(requests),
  waited: Math.round(waited),
  errors: Math.round(errorsOf({ statuses })),
  statuses,
  p50_ms: rounded(p50),
  p95_ms: rounded(p95),
  p99_ms: rounded(p99),
});

function snapshotOf(at: string, rows: readonly ({ service: string } & ReturnType<typeof rowOf>)[]) {
  const requests = rows.reduce((sum, row) => sum + row.requests, 0);
  const timed = rows.reduce((sum, row) => sum + timedOf(row), 0);
  return {
    at,
    rps: rounded(requests / 60),
    p50_ms: rounded(rows.reduce((sum, row) => sum + row.p50_ms * timedOf(row), 0) / Math.max(1, timed)),
    p95_ms: Math.max(0, ...rows.map(({ p95_ms }) => p95_ms)),
    errors: rows.reduce((sum, row) => sum + row.errors, 0),
    by_service: Object.fromEntries(rows.map(row => [row.service, { requests: row.requests, errors: row.errors }])),
  };
}

const rounded = (value: number): number => Math.round(value * 100) / 100;
