import type { Ctx } from './context.ts';

const LEASE_MS = 30_000;
const RENEW_MS = 10_000;

/**
 * Which process looks for what is due: a lock of thirty seconds, renewed every ten (G-CRON-01). It lies in Postgres beside the schedules,
 * so that there is no second store whose memory could be lost. It saves the other processes the look and is not what keeps a time from
 * firing twice: that is the lock on the schedule's row, which moves on with the firing.
 */
export class Leadership {
  readonly #ctx: Ctx;
  readonly #me: string;
  #until = 0;
  #askAt = 0;
  #given = false;

  constructor(ctx: Ctx) {
    this.#ctx = ctx;
    this.#me = ctx.platform.newId();
  }

  /** Whether this process leads now; asks for it where nobody does. */
  async held(): Promise<boolean> {
    const now = this.#ctx.clock.now();
    if (this.#given) return false;
    if (now.getTime() < this.#askAt) return now.getTime() < this.#until;
    this.#askAt = now.getTime() + RENEW_MS;
    const until = new Date(now.getTime() + LEASE_MS);
    const [row] = await this.#ctx.db.sql<object[]>`
      insert into leadership ${this.#ctx.db.sql.row({ holder: this.#me, until })} on conflict (only_one)
        do update set holder = excluded.holder, until = excluded.until
      where leadership.holder = excluded.holder or leadership.until <= ${now} returning 1`;
    this.#until = row ? until.getTime() : 0;
    return row !== undefined;
  }

  /** Gives it back, so that the next process need not wait for its end. */
  async release(): Promise<void> {
    this.#given = true;
    this.#until = 0;
    await this.#ctx.db.sql`delete from leadership where holder = ${this.#me}`;
  }
}
