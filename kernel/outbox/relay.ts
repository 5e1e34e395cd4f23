import type { PostgresPool } from '../storage/postgres-pool.ts';
import { outboxChannel } from '../storage/service-schema.ts';
import { isUnavailable } from '../storage/unavailable.ts';
import { type Deliver, type DeliveryResult, type OutboxRow, outcomeOf } from './delivery.ts';
import { claim, dueRows, heads, type OutboxState, record, stateOf, sweep } from './outbox-store.ts';
import { type RelayClock, systemClock } from './relay-clock.ts';

export interface RelayLog {
  warn(fields: object, message: string): void;
  error(fields: object, message: string): void;
}

export interface RelayOptions {
  readonly deliver: Deliver;
  readonly log: RelayLog;
  readonly clock?: RelayClock;
  /** After this a call counts as unanswered, though it may have arrived: the idempotency key makes the repeat harmless. */
  readonly callTimeoutMs?: number;
}

export interface AttachOptions {
  /** The safety net under NOTIFY: 2 s; `acme` and `post` use 5 s. */
  readonly pollMs?: number;
}

const BATCH = 100;
const ENVIRONMENTS_PER_LOOK = 500;
const CALLS_PER_SERVICE = 4;
const SWEEP_MS = 3_600_000;

/**
 * Carries the events of the attached services to the bus: one per process. Rows leave environment by environment, in the order of
 * `(created_at, id)`, at least once; a row that must wait holds up its environment, a parked one does not.
 * Life of a source: attached → (looking ⇄ resting)* → detached.
 */
export class Relay {
  readonly #sources = new Map<string, Source>();
  readonly #options: Required<RelayOptions>;

  constructor(options: RelayOptions) {
    this.#options = { clock: systemClock, callTimeoutMs: 30_000, ...options };
  }

  /** Begins to relay a service's outbox. `pool` stays the caller's; it must be open until {@link detach}. */
  async attach(service: string, pool: PostgresPool, { pollMs = 2_000 }: AttachOptions = {}): Promise<void> {
    if (this.#sources.has(service)) throw new Error(`${service} is attached already`);
    const source = new Source(service, pool, pollMs, this.#options);
    this.#sources.set(service, source);
    await source.open();
  }

  /** Ends relaying a service, after the calls under way. */
  async detach(service: string): Promise<void> {
    const source = this.#sources.get(service);
    this.#sources.delete(service);
    await source?.[Symbol.asyncDispose]();
  }

  /** Says that there is something to relay; what a committing process calls to spare the way over NOTIFY. */
  wake(service: string): void {
    this.#sources.get(service)?.wake();
  }

  /** How each attached outbox stands: age of the oldest pending row, pending and parked rows. */
  async metrics(): Promise<Map<string, OutboxState>> {
    const states = [...this.#sources.values()].map(async source => [source.service, await source.state()] as const);
    return new Map(await Promise.all(states));
  }

  /** Deletes what retention no longer keeps; runs hourly by itself. */
  async sweep(): Promise<number> {
    const counts = await Promise.all([...this.#sources.values()].map(source => source.sweep()));
    return counts.reduce((sum, count) => sum + count, 0);
  }

  /** Sends everything that is due, until nothing is or `deadlineMs` have passed; then calls under way are given up. */
  async drain(deadlineMs: number): Promise<void> {
    await Promise.all([...this.#sources.values()].map(source => source.drain(deadlineMs)));
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await Promise.all([...this.#sources.keys()].map(service => this.detach(service)));
  }
}

class Source {
  readonly service: string;
  readonly #pool: PostgresPool;
  /** Its own connections: a claim holds one for the length of a call, which must not starve the service's requests. */
  readonly #calls: PostgresPool;
  readonly #pollMs: number;
  readonly #options: Required<RelayOptions>;
  readonly #busy = new Map<string, Promise<void>>();
  /** Environments that another process was found to be at: left alone until the next poll. */
  readonly #elsewhere = new Set<string>();
  readonly #closing = new AbortController();
  #listening: AsyncDisposable | undefined;
  #looking: Promise<void> | undefined;
  #lookAgain = false;
  #crowded = false;
  #cancelTimer: () => void = () => {};
  #cancelSweep: () => void = () => {};
  #complained = false;

  constructor(service: string, pool: PostgresPool, pollMs: number, options: Required<RelayOptions>) {
    this.service = service;
    this.#pool = pool;
    this.#pollMs = pollMs;
    this.#options = options;
    // What a crash forgets to have been delivered is delivered again under the same idempotency key.
    this.#calls = pool.sibling({ max: CALLS_PER_SERVICE, idleInTransactionTimeoutMs: options.callTimeoutMs * 2, repeatable: true });
  }

  async open(): Promise<void> {
    this.#sweepLater();
    this.wake();
    // Without notifications the poll still finds everything; the driver goes on trying.
    this.#listening = await this.#pool
      .listen(
        outboxChannel(this.service),
        () => this.wake(),
        () => this.wake(),
      )
      .catch((error: unknown) => {
        this.#complain(error);
        return undefined;
      });
  }

  wake(): void {
    if (this.#closing.signal.aborted) return;
    if (this.#looking !== undefined) {
      this.#lookAgain = true;
      return;
    }
    this.#cancelTimer();
    this.#looking = this.#look().then(next => {
      this.#looking = undefined;
      if (this.#closing.signal.aborted) return;
      if (this.#lookAgain) {
        this.#lookAgain = false;
        this.wake();
        return;
      }
      const { clock } = this.#options;
      this.#cancelTimer = clock.after(Math.max(0, next - clock.now().getTime()), () => {
        this.#elsewhere.clear();
        this.wake();
      });
    });
  }

  async state(): Promise<OutboxState> {
    return stateOf(this.#pool, this.#options.clock.now());
  }

  async sweep(): Promise<number> {
    return sweep(this.#pool, this.#options.clock.now());
  }

  async drain(deadlineMs: number): Promise<void> {
    let late = false;
    const cancel = this.#options.clock.after(deadlineMs, () => {
      late = true;
      this.#closing.abort();
    });
    try {
      while (!late) {
        this.wake();
        while (this.#looking !== undefined) await this.#looking;
        if (this.#busy.size === 0) return;
        await Promise.all(this.#busy.values());
      }
    } finally {
      cancel();
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#closing.abort();
    this.#cancelTimer();
    this.#cancelSweep();
    await this.#looking;
    await Promise.all(this.#busy.values());
    await this.#listening?.[Symbol.asyncDispose]();
    await this.#calls.close();
  }

  /** Starts a call for every environment that may move, and answers when to look again. */
  async #look(): Promise<number> {
    const now = this.#options.clock.now().getTime();
    let next = now + this.#pollMs;
    try {
      this.#crowded = false;
      for (const { env_id, next_retry_at } of await heads(this.#pool, ENVIRONMENTS_PER_LOOK)) {
        const dueAt = next_retry_at === null ? now : Date.parse(next_retry_at);
        if (dueAt > now) next = Math.min(next, dueAt);
        else if (this.#busy.has(env_id) || this.#elsewhere.has(env_id)) continue;
        else if (this.#busy.size < CALLS_PER_SERVICE) this.#begin(env_id);
        else this.#crowded = true;
      }
      this.#complained = false;
    } catch (error) {
      this.#complain(error);
    }
    return next;
  }

  #begin(envId: string): void {
    const call = this.#relay(envId).then(
      moved => {
        this.#busy.delete(envId);
        if (moved || this.#crowded) this.wake();
      },
      (error: unknown) => {
        this.#busy.delete(envId);
        this.#complain(error);
      },
    );
    this.#busy.set(envId, call);
  }

  /** One batch of one environment. False when there was nothing to do, or another process is at it. */
  async #relay(envId: string): Promise<boolean> {
    const { clock } = this.#options;
    return this.#calls.tx(async (_, tx) => {
      if (!(await claim(tx, this.service, envId))) {
        this.#elsewhere.add(envId);
        return false;
      }
      // A statement of its own, after the claim: it must see what the last holder of the claim committed.
      const rows = await dueRows(tx, envId, clock.now(), BATCH);
      if (rows.length === 0 || this.#closing.signal.aborted) return false;
      const results = await this.#call(rows);
      const now = clock.now();
      const outcomes = rows.map((row, index) => outcomeOf(row, results[index] ?? unanswered('the answer is shorter than the batch'), now));
      await record(tx, outcomes, now);
      for (const [index, outcome] of outcomes.entries()) {
        const { id, event_type } = rows[index] as OutboxRow;
        if (outcome.parked) this.#options.log.error({ alert: 'outbox_parked', service: this.service, env_id: envId, id, event_type, last_error: outcome.last_error }, 'event parked');
      }
      return true;
    });
  }

  async #call(rows: readonly OutboxRow[]): Promise<readonly DeliveryResult[]> {
    const { clock, deliver, callTimeoutMs } = this.#options;
    const late = new AbortController();
    const signal = AbortSignal.any([late.signal, this.#closing.signal]);
    const cancel = clock.after(callTimeoutMs, () => late.abort(new Error('no answer in time')));
    const gone = Promise.withResolvers<never>();
    const give = (): void => gone.reject(signal.reason);
    signal.addEventListener('abort', give, { once: true });
    try {
      return await Promise.race([deliver(rows, { service: this.service, signal }), gone.promise]);
    } catch (error) {
      return rows.map(() => unanswered(error instanceof Error ? error.message : String(error)));
    } finally {
      cancel();
      signal.removeEventListener('abort', give);
    }
  }

  #sweepLater(): void {
    this.#cancelSweep = this.#options.clock.after(SWEEP_MS, () => {
      void this.sweep()
        .catch((error: unknown) => this.#complain(error))
        .then(() => {
          if (!this.#closing.signal.aborted) this.#sweepLater();
        });
    });
  }

  /** Once per outage, not once per poll. */
  #complain(error: unknown): void {
    if (this.#complained || this.#closing.signal.aborted) return;
    this.#complained = true;
    const level = isUnavailable(error) ? 'warn' : 'error';
    this.#options.log[level]({ service: this.service, err: error }, 'outbox cannot be relayed');
  }
}

function unanswered(error: string): DeliveryResult {
  return { ok: false, status: null, error };
}
