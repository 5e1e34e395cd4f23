import { type Limit, SYSTEM } from '@platform/sdk';
import type { EventBusContext } from '../context.ts';

const FRESH_MS = 2_000;

/** Whether verticals may produce into an environment now: not while it is suspended, and not faster than its bucket. */
export class Admission {
  readonly #ctx: EventBusContext;
  readonly #rate: Limit;
  #suspended: ReadonlySet<string> = new Set();
  #readAt = Number.NEGATIVE_INFINITY;

  constructor(ctx: EventBusContext) {
    this.#ctx = ctx;
    const { produceRate, produceBurst } = ctx.config;
    this.#rate = ctx.limit({ name: 'produce', perSecond: produceRate, burst: produceBurst });
  }

  async isSuspended(env: string): Promise<boolean> {
    const now = this.#ctx.clock.now().getTime();
    if (now - this.#readAt >= FRESH_MS) {
      this.#readAt = now;
      const rows = await this.#ctx.db.sql<{ env_id: string }[]>`select env_id from suspended_environments`;
      this.#suspended = new Set(rows.map(({ env_id }) => env_id));
    }
    return this.#suspended.has(env);
  }

  /** How many of `asked` events pass. Without the store nothing is counted: the append would fail anyway. */
  take(env: string, asked: number): Promise<number> {
    return this.#rate.takeUpTo(env, asked);
  }

  /** What the registry says about an environment. */
  async environmentChanged(payload: Readonly<Record<string, unknown>>): Promise<void> {
    const { env_id, status } = payload;
    if (typeof env_id !== 'string' || env_id === SYSTEM.envId) return;
    await this.#ctx.db.tx(async ({ sql }) => {
      if (status === 'suspended') await sql`insert into suspended_environments (env_id) values (${env_id}) on conflict do nothing`;
      else await sql`delete from suspended_environments where env_id = ${env_id}`;
    });
    this.#readAt = Number.NEGATIVE_INFINITY;
  }
}
