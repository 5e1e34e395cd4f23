import type { Firing } from '@platform/scheduler/contract';
import type { Ctx } from '../context.ts';

const DAY_MS = 86_400_000;
const AT_ONCE = 4;

interface Counted {
  readonly env_id: string;
  readonly instances: number;
  readonly listings: number;
  readonly installs: number;
}

/**
 * How much there is in each environment, once a day (G-APP-08): `instances.count` and `listings.count` as they are, `installs.daily` of
 * the day before. Each counts once for its environment and day, no matter who asks and how often.
 */
export class DailyCounters {
  readonly #ctx: Ctx;

  constructor(ctx: Ctx) {
    this.#ctx = ctx;
  }

  /** Only queues it: the answer waits for nobody, and a failure is the task's (APP-027). */
  async ask({ fire_at }: Firing): Promise<void> {
    const day = fire_at.slice(0, 10);
    await this.#ctx.db.tx(tx => tx.enqueue('count', { day, at: fire_at }, { key: day }));
  }

  async count({ day, at }: { day: string; at: string }, signal: AbortSignal): Promise<void> {
    const until = new Date(`${day}T00:00:00.000Z`);
    const since = new Date(until.getTime() - DAY_MS);
    const rows = await this.#ctx.db.sql<Counted[]>`
      select env_id, sum(instances)::int as instances, sum(listings)::int as listings, sum(installs)::int as installs from (
        select env_id, count(*) filter (where open) as instances, 0 as listings, count(*) filter (where created_at >= ${since}
          and created_at < ${until}) as installs from instances group by 1
        union all select env_id, 0, count(*), 0 from listings group by 1) as counted group by 1`;
    const queue = rows.values();
    await Promise.all(
      Array.from({ length: AT_ONCE }, async () => {
        for (const row of queue) {
          signal.throwIfAborted();
          await this.#record(row, day, at, signal);
        }
      }),
    );
  }

  async #record({ env_id, instances, listings, installs }: Counted, day: string, at: string, signal: AbortSignal): Promise<void> {
    const { statistics } = this.#ctx.services;
    const { property_id } = await statistics.provision({
      body: { env_id, kind: 'instance', ref_id: `app-store:${env_id}`, name: 'App store' },
      signal,
    });
    for (const [metric, value] of Object.entries({ 'instances.count': instances, 'listings.count': listings, 'installs.daily': installs }))
      await statistics.measure({
        body: { property_id, metric, value, at, dimensions: { env: env_id }, idempotency_key: `${metric}:${env_id}:${day}` },
        signal,
      });
  }
}
